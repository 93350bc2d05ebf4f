package split

import "unicode/utf8"

// scanner checks JSON grammar (RFC 8259) and nesting without building values: records
// are passed on unchanged.
type scanner struct {
	data []byte
	pos  int
}

const unexpectedEnd = "the JSON ends early"

// errorHere returns an error at the scanner's position, or at an early end.
func (s *scanner) errorHere(reason string) error {
	if s.pos >= len(s.data) {
		reason = unexpectedEnd
	}
	return Malformed(s.pos, reason)
}

// skipSpace moves to the next byte that is not white space and returns it, 0 at
// the end (a zero byte is not valid JSON anywhere, so the two cannot be
// confused).
func (s *scanner) skipSpace() byte {
	for ; s.pos < len(s.data); s.pos++ {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// skipValue moves past one value and the white space before it. depth is the number of
// arrays and objects that it may still open.
func (s *scanner) skipValue(depth int) error {
	switch s.skipSpace() {
	case '{':
		return s.skipObject(depth)
	case '[':
		return s.skipArray(depth)
	case '"':
		return s.skipString()
	case 't':
		return s.skipLiteral("true")
	case 'f':
		return s.skipLiteral("false")
	case 'n':
		return s.skipLiteral("null")
	default:
		return s.skipNumber()
	}
}

func (s *scanner) skipObject(depth int) error {
	if depth == 0 {
		return s.errorHere("nested too deeply")
	}
	s.pos++ // {
	if s.skipSpace() == '}' {
		s.pos++
		return nil
	}
	for {
		if s.skipSpace() != '"' {
			return s.errorHere("a member's name is missing")
		}
		if err := s.skipString(); err != nil {
			return err
		}
		if s.skipSpace() != ':' {
			return s.errorHere("a colon is missing")
		}
		s.pos++
		if err := s.skipValue(depth - 1); err != nil {
			return err
		}
		more, err := s.skipCommaOrEnd('}')
		if !more {
			return err
		}
	}
}

func (s *scanner) skipArray(depth int) error {
	if depth == 0 {
		return s.errorHere("nested too deeply")
	}
	s.pos++ // [
	if s.skipSpace() == ']' {
		s.pos++
		return nil
	}
	for {
		if err := s.skipValue(depth - 1); err != nil {
			return err
		}
		more, err := s.skipCommaOrEnd(']')
		if !more {
			return err
		}
	}
}

// skipCommaOrEnd moves past the comma before the next member, or the closing bracket.
func (s *scanner) skipCommaOrEnd(closing byte) (more bool, err error) {
	switch s.skipSpace() {
	case ',':
		s.pos++
		return true, nil
	case closing:
		s.pos++
		return false, nil
	default:
		return false, s.errorHere("a comma is missing")
	}
}

func (s *scanner) skipLiteral(word string) error {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return s.errorHere("not a JSON value")
	}
	s.pos += len(word)
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
