package ingest

import (
	"mime"
	"strings"

	"trunkline/format"
	"trunkline/internal/fault"
)

// encodingOf returns how a body of the format splits. No Content-Type at all
// means JSON.
func encodingOf(f *format.Format, contentType string) (format.Encoding, error) {
	if strings.TrimSpace(contentType) == "" {
		contentType = "application/json"
	}
	unsupported := fault.New(fault.KindUnsupported, "This Content-Type is not taken for this format")
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return format.Encoding{}, unsupported
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return format.Encoding{}, unsupported
	}
	encoding, ok := f.Encoding(media)
	if !ok {
		return format.Encoding{}, unsupported
	}
	return encoding, nil
}
