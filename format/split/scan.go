package split

import "unicode/utf8"

// scanner checks JSON grammar (RFC 8259) and nesting without building values: records
// are passed on unchanged.
type scanner struct {
	data []byte
	at   int
}

const endsEarly = "the JSON ends early"

// fail returns an error at the scanner's position, or at an early end.
func (s *scanner) fail(reason string) error {
	if s.at >= len(s.data) {
		reason = endsEarly
	}
	return Malformed(s.at, reason)
}

// skipSpace moves to the next byte that is not white space and returns it, 0 at
// the end (a zero byte is not valid JSON anywhere, so the two cannot be
// confused).
func (s *scanner) skipSpace() byte {
	for ; s.at < len(s.data); s.at++ {
		switch c := s.data[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// value moves past one value and the white space before it. depth is the number of
// arrays and objects that it may still open.
func (s *scanner) value(depth int) error {
	switch s.skipSpace() {
	case '{':
		return s.object(depth)
	case '[':
		return s.array(depth)
	case '"':
		return s.text()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

func (s *scanner) object(depth int) error {
	if depth == 0 {
		return s.fail("nested too deeply")
	}
	s.at++ // {
	if s.skipSpace() == '}' {
		s.at++
		return nil
	}
	for {
		if s.skipSpace() != '"' {
			return s.fail("a member's name is missing")
		}
		if err := s.text(); err != nil {
			return err
		}
		if s.skipSpace() != ':' {
			return s.fail("a colon is missing")
		}
		s.at++
		if err := s.value(depth - 1); err != nil {
			return err
		}
		if more, err := s.another('}'); !more {
			return err
		}
	}
}

func (s *scanner) array(depth int) error {
	if depth == 0 {
		return s.fail("nested too deeply")
	}
	s.at++ // [
	if s.skipSpace() == ']' {
		s.at++
		return nil
	}
	for {
		if err := s.value(depth - 1); err != nil {
			return err
		}
		if more, err := s.another(']'); !more {
			return err
		}
	}
}

// another moves past the comma before the next member, or the closing bracket.
func (s *scanner) another(closing byte) (more bool, err error) {
	switch s.skipSpace() {
	case ',':
		s.at++
		return true, nil
	case closing:
		s.at++
		return false, nil
	default:
		return false, s.fail("a comma is missing")
	}
}

func (s *scanner) word(word string) error {
	if len(s.data)-s.at < len(word) || string(s.data[s.at:s.at+len(word)]) != word {
		return s.fail("not a JSON value")
	}
	s.at += len(word)
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
			return Malformed(at, "not valid UTF-8")
		}
		at += size
	}
	return nil
}
