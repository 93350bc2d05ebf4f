package ingest

import (
	"mime"
	"strings"

	"trunkline/format"
	"trunkline/internal/fault"
)

// selectEncoding returns the encoding of a body by its Content-Type. An absent one
// means JSON.
func selectEncoding(f *format.Format, contentType string) (format.Encoding, error) {
	if strings.TrimSpace(contentType) == "" {
		contentType = "application/json"
	}

	unsupported := fault.New(fault.KindUnsupported, "This format does not accept this Content-Type")
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return format.Encoding{}, unsupported
	}

	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return format.Encoding{}, unsupported
	}

	encoding, ok := f.EncodingOf(media)
	if !ok {
		return format.Encoding{}, unsupported
	}

	return encoding, nil
}
