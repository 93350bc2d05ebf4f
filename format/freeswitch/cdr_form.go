package freeswitch

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strings"

	"trunkline/format/split"
)

// mod_json_cdr posts a record as the form field "cdr", URL-encoded
// (encode=true) or in base64 (encode=base64). The Content-Type does not reliably give
// the encoding: with disable-100-continue=true both, and bare JSON too, arrive as
// application/x-www-form-urlencoded. So it is detected from the body.

// splitForm splits the bodies of mod_json_cdr, whichever Content-Type they have.
func splitForm(body []byte, to split.Sink) error {
	if startsJSON(body) {
		return split.JSON(body, to)
	}

	field, offset, err := findCDRField(body)
	if err != nil {
		return err
	}

	// Before it is decoded: nothing longer can be a record.
	if len(field) > maxEscapeFactor*split.MaxRecord {
		return split.RecordTooLarge(offset)
	}

	text, err := decodeField(string(field))
	if err != nil {
		return split.Malformed(offset, "the field cdr is neither URL-encoded nor base64-encoded JSON")
	}

	text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	// Offsets in the decoded text are not offsets in the body, so the error gives a
	// line of the decoded text.
	return split.WithLine(split.JSON(text, to), text)
}

// startsJSON reports whether text begins with an object or an array. Neither a form
// nor base64 does.
func startsJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}

// findCDRField finds the only field cdr, still encoded, and its offset.
func findCDRField(body []byte) (field []byte, offset int, err error) {
	found := false
	for start := 0; start < len(body); {
		end := len(body)
		i := bytes.IndexByte(body[start:], '&')
		if i >= 0 {
			end = start + i
		}

		if value, ok := bytes.CutPrefix(body[start:end], []byte("cdr=")); ok {
			if found {
				return nil, 0, split.Malformed(start, "the form has more than one field cdr")
			}
			field, offset, found = value, end-len(value), true
		}

		start = end + 1
	}

	if !found {
		return nil, 0, split.Malformed(0, "the field cdr is missing")
	}

	return field, offset, nil
}

// decodeField returns the JSON text of the field cdr.
func decodeField(field string) ([]byte, error) {
	text, err := url.QueryUnescape(field)
	if err == nil && startsJSON([]byte(text)) {
		return repairJSON([]byte(text)), nil
	}
	return decodeBase64(field)
}

// decodeBase64 accepts the changes that servers and proxies make to mod_json_cdr's
// bare base64: + replaced by a space, + / = percent-encoded, padding removed.
func decodeBase64(s string) ([]byte, error) {
	s, err := url.PathUnescape(s)
	if err != nil {
		return nil, err
	}
	s = strings.TrimRight(strings.ReplaceAll(s, " ", "+"), "=\r\n")
	return base64.RawStdEncoding.DecodeString(s)
}
