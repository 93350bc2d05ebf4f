package split

import "bytes"

// JSON splits a body of one object, or an array of objects.
func JSON(body []byte, emit Sink) error {
	if err := CheckUTF8(body); err != nil {
		return err
	}
	s := scanner{data: body}
	var err error
	switch first := s.skipSpace(); {
	case s.at == len(body):
		return Malformed(s.at, "the body is empty")
	case first == '[':
		err = s.elements(emit)
	default:
		err = s.record(emit)
	}
	if err != nil {
		return err
	}
	if s.skipSpace(); s.at < len(body) {
		return s.fail("something follows the JSON value")
	}
	return nil
}

// elements emits each element of an array of objects.
func (s *scanner) elements(emit Sink) error {
	s.at++ // [
	if s.skipSpace() == ']' {
		s.at++
		return nil
	}
	for {
		s.skipSpace()
		if err := s.record(emit); err != nil {
			return err
		}
		if more, err := s.another(']'); !more {
			return err
		}
	}
}

// record emits the object at the scanner's position.
func (s *scanner) record(emit Sink) error {
	start := s.at
	if start < len(s.data) && s.data[start] != '{' {
		if err := s.value(MaxDepth); err != nil {
			return err
		}
		return Malformed(start, "a record must be a JSON object")
	}
	if err := s.value(MaxDepth); err != nil {
		return err
	}
	return emit(s.data[start:s.at:s.at], start)
}

// NDJSON splits a body of one object per line; it skips blank lines.
func NDJSON(body []byte, emit Sink) error {
	if err := CheckUTF8(body); err != nil {
		return err
	}
	for start := 0; start < len(body); {
		end := len(body)
		if i := bytes.IndexByte(body[start:], '\n'); i >= 0 {
			end = start + i
		}
		s := scanner{data: body[:end], at: start}
		if s.skipSpace(); s.at < end {
			if err := s.record(emit); err != nil {
				return err
			}
			if s.skipSpace(); s.at < end {
				return s.fail("something follows the JSON object")
			}
		}
		start = end + 1
	}
	return nil
}
