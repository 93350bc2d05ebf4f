package freeswitch

import (
	"bytes"
	"net/url"

	"trunkline/internal/jsonscan"
)

// decodeText returns the text of a value, which may be URL-encoded.
func decodeText(v jsonscan.Value) string {
	text, _ := v.Text()
	if bytes.IndexByte(text, '%') >= 0 {
		return unescape(string(text))
	}
	return string(text)
}

// unescape decodes URL-encoding; it returns other text unchanged.
func unescape(s string) string {
	plain, err := url.PathUnescape(s)
	if err == nil {
		return plain
	}
	return s
}
