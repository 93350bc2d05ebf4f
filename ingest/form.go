package ingest

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strings"
)

// mod_json_cdr posts its record as the form field "cdr", in one of two
// encodings.

// splitForm takes application/x-www-form-urlencoded.
func splitForm(body []byte, emit sink) error { return splitField(body, unescapeForm, emit) }

// splitBase64Form takes FreeSWITCH's application/x-www-form-base64-encoded.
func splitBase64Form(body []byte, emit sink) error { return splitField(body, unescapeBase64, emit) }

func splitField(body []byte, decode func(string) ([]byte, error), emit sink) error {
	field, at, err := cdrField(body)
	if err != nil {
		return err
	}
	if len(field) > maxEscape*MaxRecord {
		return recordTooLarge(at)
	}
	text, err := decode(string(field))
	if err != nil {
		return malformed(at, "the field cdr is not encoded as its Content-Type says")
	}
	// Offsets in the decoded text say nothing about the body; its line does.
	return withLine(splitJSON(text, emit), text)
}

// cdrField finds the one field cdr, still encoded, and where it begins.
func cdrField(body []byte) (field []byte, at int, err error) {
	found := false
	for start := 0; start < len(body); {
		end := len(body)
		if i := bytes.IndexByte(body[start:], '&'); i >= 0 {
			end = start + i
		}
		if value, ok := bytes.CutPrefix(body[start:end], []byte("cdr=")); ok {
			if found {
				return nil, 0, malformed(start, "the field cdr is there twice")
			}
			field, at, found = value, end-len(value), true
		}
		start = end + 1
	}
	if !found {
		return nil, 0, malformed(0, "the field cdr is missing")
	}
	return field, at, nil
}

func unescapeForm(s string) ([]byte, error) {
	text, err := url.QueryUnescape(s)
	return []byte(text), err
}

// unescapeBase64 accepts what servers and proxies make of mod_json_cdr's bare
// base64: + turned into a space, + / = percent-encoded, padding lost.
func unescapeBase64(s string) ([]byte, error) {
	s, err := url.PathUnescape(s)
	if err != nil {
		return nil, err
	}
	s = strings.TrimRight(strings.ReplaceAll(s, " ", "+"), "=\r\n")
	return base64.RawStdEncoding.DecodeString(s)
}
