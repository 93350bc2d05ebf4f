package split

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"trunkline/internal/jsonscan"
)

// JSON splits a body of one object, or an array of objects.
func JSON(body []byte, to Sink) error {
	if err := CheckUTF8(body); err != nil {
		return err
	}

	at := jsonscan.SkipSpace(body, 0)
	if at == len(body) {
		return Malformed(at, "the body is empty")
	}

	var err error
	if body[at] == '[' {
		at, err = to.splitArray(body, at+1)
	} else {
		at, err = to.splitObject(body, at)
	}

	if err != nil {
		return err
	}

	at = jsonscan.SkipSpace(body, at)
	if at < len(body) {
		return Malformed(at, "something follows the JSON value")
	}

	return nil
}

// splitArray takes each element of an array of objects, from behind its opening bracket, and returns the
// end of the array.
func (s Sink) splitArray(body []byte, at int) (end int, err error) {
	at = jsonscan.SkipSpace(body, at)
	if at < len(body) && body[at] == ']' {
		return at + 1, nil
	}

	for more := true; more; {
		at, err = s.splitObject(body, at)
		if err != nil {
			return at, err
		}

		at, more, err = jsonscan.SkipComma(body, at, ']')
		if err != nil {
			return at, malformedJSON(at, err)
		}
	}

	return at, nil
}

// splitObject takes the object at an offset of valid UTF-8 and returns its end.
func (s Sink) splitObject(body []byte, at int) (end int, err error) {
	clear(s.MemberValues)
	end, err = s.MemberKeys.ScanAt(body, at, s.MemberValues)
	if errors.Is(err, jsonscan.ErrNotObject) {
		return end, Malformed(at, "a record must be a JSON object")
	}
	if err != nil {
		return end, malformedJSON(end, err)
	}
	// With its capacity cut: what a sink appends does not overwrite the next record.
	return end, s.Take(body[at:end:end], at)
}

// malformedJSON returns the error for one of jsonscan at an offset.
func malformedJSON(at int, err error) error {
	if syntax, ok := errors.AsType[*jsonscan.SyntaxError](err); ok {
		return Malformed(at, syntax.Reason)
	}
	return Malformed(at, err.Error())
}

// NDJSON splits a body of one object per line; it skips blank lines.
func NDJSON(body []byte, to Sink) error {
	if err := CheckUTF8(body); err != nil {
		return err
	}

	for start := 0; start < len(body); {
		end := len(body)
		i := bytes.IndexByte(body[start:], '\n')
		if i >= 0 {
			end = start + i
		}

		at := jsonscan.SkipSpace(body[:end], start)
		if at < end {
			after, err := to.splitObject(body[:end], at)
			if err != nil {
				return err
			}

			after = jsonscan.SkipSpace(body[:end], after)
			if after < end {
				return Malformed(after, "something follows the JSON object")
			}
		}

		start = end + 1
	}

	return nil
}

// CheckUTF8 finds the first bytes that are not UTF-8.
func CheckUTF8(data []byte) error {
	if utf8.Valid(data) {
		return nil
	}

	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size == 1 {
			return Malformed(at, jsonscan.ErrUTF8.Error())
		}
		at += size
	}

	return nil
}
