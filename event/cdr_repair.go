package event

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"
)

// CDRRepairs counts what Repair changed in a row.
type CDRRepairs struct {
	Text  int // texts with bytes that are not UTF-8, or with NUL characters
	Cut   int // texts longer than their field
	Clock int // impossible times and durations, left out
}

// Repair changes what Check rejects in the texts and durations of a row: a phone platform's record holds
// what callers sent and what its clock showed, and neither decides whether the row exists. Bytes that are
// not UTF-8 and NUL characters become U+FFFD, texts are cut at their limit, and durations out of range are
// left out. A missing field stays missing.
func (r *CDR) Repair() (n CDRRepairs) {
	for i := range fieldTable {
		f := &fieldTable[i]
		switch f.Kind {
		case CDRText:
			n.repairText(f.Text(r), f.Max)
		case CDRObject:
			n.repairObject(f.Object(r))
		case CDRSeconds:
			d := f.Seconds(r)
			if *d != nil && (**d < 0 || **d > int64(MaxDuration/time.Second)) {
				*d = nil
				n.Clock++
			}
		case CDRTime:
		}
	}

	return n
}

func (n *CDRRepairs) repairText(text *string, limit int) {
	if !utf8.ValidString(*text) || strings.IndexByte(*text, 0) >= 0 {
		*text = strings.ReplaceAll(strings.ToValidUTF8(*text, "\uFFFD"), "\x00", "\uFFFD")
		n.Text++
	}
	if len(*text) > limit {
		*text = cutText(*text, limit)
		n.Cut++
	}
}

// cutHashLength is the length of the hash at the end of an id that was cut, in hexadecimal digits.
const cutHashLength = 16

// cutText cuts a text to at most limit bytes. An id gets a hash of the whole at its end, so that
// different ids stay different, and the same id is the same in each row.
func cutText(text string, limit int) string {
	end, suffix := limit, ""
	if limit == MaxCDRID {
		hash := sha256.Sum256([]byte(text))
		suffix = "~" + hex.EncodeToString(hash[:])[:cutHashLength]
		end -= len(suffix)
	}

	for !utf8.RuneStart(text[end]) {
		end--
	}

	return text[:end] + suffix
}

func (n *CDRRepairs) repairObject(object *json.RawMessage) {
	if *object == nil || utf8.Valid(*object) && !hasNUL(*object) {
		return
	}

	text := bytes.ToValidUTF8(*object, []byte("\uFFFD"))
	repaired := make(json.RawMessage, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == 0, isEscapedNUL(text[i:]):
			repaired = append(repaired, "\uFFFD"...)
			if text[i] != 0 {
				i += len(escapedNUL) - 1
			}
		case text[i] == '\\' && i+1 < len(text):
			repaired = append(repaired, text[i], text[i+1])
			i++
		default:
			repaired = append(repaired, text[i])
		}
	}

	*object = repaired
	n.Text++
}

const escapedNUL = `\u0000`

func isEscapedNUL(text []byte) bool { return bytes.HasPrefix(text, []byte(escapedNUL)) }

// hasNUL reports whether a JSON text holds a NUL character, escaped or not.
func hasNUL(text []byte) bool {
	if bytes.IndexByte(text, 0) >= 0 {
		return true
	}

	for i := 0; i < len(text); i++ {
		switch {
		case isEscapedNUL(text[i:]):
			return true
		case text[i] == '\\':
			i++ // the escaped character
		}
	}

	return false
}
