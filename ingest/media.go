package ingest

import (
	"mime"
	"strings"

	"trunkline/internal/fault"
)

// Formats that have encodings of their own, beside JSON.
const (
	formatSwitchEvent = "freeswitch.event"
	formatCallCenter  = "freeswitch.callcenter"
	formatJSONCDR     = "freeswitch.json_cdr"
)

// encoding is how records lie in a body.
type encoding struct {
	split splitter
	// copies says that records are made anew rather than being parts of the
	// body, so that they need memory of their own.
	copies bool
}

var encodings = map[string]struct {
	encoding
	formats []string // nil: every format
}{
	"application/json":                      {encoding: encoding{split: splitJSON}},
	"application/x-ndjson":                  {encoding: encoding{split: splitNDJSON}},
	"text/event-plain":                      {encoding{splitPlain, true}, []string{formatSwitchEvent, formatCallCenter}},
	"application/x-www-form-urlencoded":     {encoding{splitForm, true}, []string{formatJSONCDR}},
	"application/x-www-form-base64-encoded": {encoding{splitForm, true}, []string{formatJSONCDR}},
}

// encodingOf picks how to split a body of the format. No Content-Type at all
// means JSON.
func encodingOf(format, contentType string) (encoding, error) {
	if strings.TrimSpace(contentType) == "" {
		contentType = "application/json"
	}
	unsupported := fault.New(fault.KindUnsupported, "This Content-Type is not taken for this format")
	media, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return encoding{}, unsupported
	}
	if charset, ok := params["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return encoding{}, unsupported
	}
	e, ok := encodings[media]
	if !ok {
		return encoding{}, unsupported
	}
	if e.formats == nil {
		return e.encoding, nil
	}
	for _, f := range e.formats {
		if f == format {
			return e.encoding, nil
		}
	}
	return encoding{}, unsupported
}
