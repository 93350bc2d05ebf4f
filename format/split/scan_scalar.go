package split

import "trunkline/internal/jsonscan"

// skipString moves past a string, starting at its opening quote.
func (s *scanner) skipString() error {
	for i := s.pos + 1; ; {
		i = jsonscan.IndexSpecial(s.data, i)
		if i >= len(s.data) {
			s.pos = len(s.data)
			return s.errorHere(unexpectedEnd)
		}
		switch s.data[i] {
		case '"':
			s.pos = i + 1
			return nil
		case '\\':
			n := EscapeLen(s.data[i+1:])
			if n == 0 {
				s.pos = i
				return s.errorHere("a string has an unknown escape")
			}
			i += 1 + n
		default:
			s.pos = i
			return s.errorHere("a string has a control character")
		}
	}
}

// EscapeLen returns the number of bytes of rest, which follows a backslash, that
// belong to the escape; 0 if it is not an escape.
func EscapeLen(rest []byte) int {
	if len(rest) == 0 {
		return 0
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 1
	case 'u':
		if len(rest) < 5 {
			return 0
		}
		for _, c := range rest[1:5] {
			if Unhex(c) < 0 {
				return 0
			}
		}
		return 5
	}
	return 0
}

// Unhex returns the value of a hex digit of either case, -1 for any other byte.
func Unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// skipNumber moves past a number: -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
func (s *scanner) skipNumber() error {
	start := s.pos
	s.accept("-")
	switch {
	case s.accept("0"):
	case s.skipDigits():
	default:
		s.pos = start
		return s.errorHere("not a JSON value")
	}
	if s.accept(".") && !s.skipDigits() {
		return s.errorHere("a number has no digits after its point")
	}
	if s.accept("eE") {
		s.accept("+-")
		if !s.skipDigits() {
			return s.errorHere("a number has no digits in its exponent")
		}
	}
	return nil
}

// accept moves past one byte that is in set.
func (s *scanner) accept(set string) bool {
	if s.pos >= len(s.data) {
		return false
	}
	for i := range len(set) {
		if s.data[s.pos] == set[i] {
			s.pos++
			return true
		}
	}
	return false
}

// skipDigits moves past one or more digits.
func (s *scanner) skipDigits() bool {
	start := s.pos
	for s.pos < len(s.data) && '0' <= s.data[s.pos] && s.data[s.pos] <= '9' {
		s.pos++
	}
	return s.pos > start
}
