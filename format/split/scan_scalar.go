package split

import "trunkline/internal/jsonscan"

// text moves past a string, starting at its opening quote.
func (s *scanner) text() error {
	for i := s.at + 1; ; {
		if i = jsonscan.IndexSpecial(s.data, i); i >= len(s.data) {
			s.at = len(s.data)
			return s.fail(endsEarly)
		}
		switch s.data[i] {
		case '"':
			s.at = i + 1
			return nil
		case '\\':
			n := EscapeLen(s.data[i+1:])
			if n == 0 {
				s.at = i
				return s.fail("a string has an unknown escape")
			}
			i += 1 + n
		default:
			s.at = i
			return s.fail("a string has a control character")
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

// number moves past a number: -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
func (s *scanner) number() error {
	start := s.at
	s.accept("-")
	switch {
	case s.accept("0"):
	case s.digits():
	default:
		s.at = start
		return s.fail("not a JSON value")
	}
	if s.accept(".") && !s.digits() {
		return s.fail("a number has no digits after its point")
	}
	if s.accept("eE") {
		s.accept("+-")
		if !s.digits() {
			return s.fail("a number has no digits in its exponent")
		}
	}
	return nil
}

// accept moves past one byte that is in set.
func (s *scanner) accept(set string) bool {
	if s.at >= len(s.data) {
		return false
	}
	for i := range len(set) {
		if s.data[s.at] == set[i] {
			s.at++
			return true
		}
	}
	return false
}

// digits moves past one or more digits.
func (s *scanner) digits() bool {
	start := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at > start
}
