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
	case s.pos == len(body):
		return Malformed(s.pos, "the body is empty")
	case first == '[':
		err = s.emitElements(emit)
	default:
		err = s.emitRecord(emit)
	}
	if err != nil {
		return err
	}
	s.skipSpace()
	if s.pos < len(body) {
		return s.errorHere("something follows the JSON value")
	}
	return nil
}

// emitElements emits each element of an array of objects.
func (s *scanner) emitElements(emit Sink) error {
	s.pos++ // [
	if s.skipSpace() == ']' {
		s.pos++
		return nil
	}
	for {
		s.skipSpace()
		if err := s.emitRecord(emit); err != nil {
			return err
		}
		more, err := s.skipCommaOrEnd(']')
		if !more {
			return err
		}
	}
}

// emitRecord emits the object at the scanner's position.
func (s *scanner) emitRecord(emit Sink) error {
	start := s.pos
	if start < len(s.data) && s.data[start] != '{' {
		if err := s.skipValue(MaxDepth); err != nil {
			return err
		}
		return Malformed(start, "a record must be a JSON object")
	}
	if err := s.skipValue(MaxDepth); err != nil {
		return err
	}
	return emit(s.data[start:s.pos:s.pos], start)
}

// NDJSON splits a body of one object per line; it skips blank lines.
func NDJSON(body []byte, emit Sink) error {
	if err := CheckUTF8(body); err != nil {
		return err
	}
	for start := 0; start < len(body); {
		end := len(body)
		i := bytes.IndexByte(body[start:], '\n')
		if i >= 0 {
			end = start + i
		}
		s := scanner{data: body[:end], pos: start}
		s.skipSpace()
		if s.pos < end {
			if err := s.emitRecord(emit); err != nil {
				return err
			}
			s.skipSpace()
			if s.pos < end {
				return s.errorHere("something follows the JSON object")
			}
		}
		start = end + 1
	}
	return nil
}
