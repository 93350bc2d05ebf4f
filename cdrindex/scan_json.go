package cdrindex

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"trunkline/event"
)

// scanRow reads a row in the plain form that the normalizer writes: an object without
// spaces, of the row's own fields, whose texts need no escapes. It returns false for any
// other form, which encoding/json then reads; for the plain form both give the same row.
// Reading is a quarter of the work of indexing.
func scanRow(value []byte, row *event.CDR) bool {
	rest, ok := strings.CutPrefix(string(value), "{") // the row's texts share this copy
	for next := 0; ok; {
		var name string
		name, rest, ok = cutText(rest)
		if !ok {
			return false
		}
		rest, ok = strings.CutPrefix(rest, ":")
		if !ok {
			return false
		}
		f := findField(name, &next)
		if f == nil {
			return false
		}
		rest, ok = scanField(row, f, rest)
		if !ok {
			return false
		}
		if rest == "}" {
			return true
		}
		rest, ok = strings.CutPrefix(rest, ",")
	}
	return false
}

// findField returns the field with the name, nil if there is none. The normalizer writes
// fields in their order: the search begins at next.
func findField(name string, next *int) *event.CDRField {
	fields := event.CDRFields()
	for range fields {
		f := &fields[*next]
		*next++
		if *next == len(fields) {
			*next = 0
		}
		if f.Name == name {
			return f
		}
	}
	return nil
}

// scanField reads the value of a field and returns what follows it.
func scanField(row *event.CDR, f *event.CDRField, text string) (rest string, ok bool) {
	switch f.Kind {
	case event.CDRText:
		*f.Text(row), rest, ok = cutText(text)
	case event.CDRTime:
		*f.Time(row), rest, ok = cutNumber(text)
	case event.CDRSeconds:
		n := new(int64)
		*n, rest, ok = cutNumber(text)
		*f.Seconds(row) = n
	case event.CDRObject:
		*f.Object(row), rest, ok = cutObject(text)
	}
	return rest, ok
}

// cutText cuts a string without escapes off the front.
func cutText(text string) (s, rest string, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return "", "", false
	}
	s, rest, ok = strings.Cut(text[1:], `"`)
	ascii := true
	for i := range len(s) {
		c := s[i]
		if c < ' ' || c == '\\' {
			return "", "", false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	return s, rest, ok && (ascii || utf8.ValidString(s))
}

// cutNumber cuts a whole number off the front.
func cutNumber(text string) (n int64, rest string, ok bool) {
	end := 0
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	if end == 0 || end == len(text) || end > 1 && text[0] == '0' || text[end] != ',' && text[end] != '}' {
		return 0, "", false
	}
	n, err := strconv.ParseInt(text[:end], 10, 64)
	return n, text[end:], err == nil
}

// cutObject cuts an object off the front.
func cutObject(text string) (object json.RawMessage, rest string, ok bool) {
	if len(text) == 0 || text[0] != '{' {
		return nil, "", false
	}
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			depth--
		}
		if depth == 0 {
			object = json.RawMessage(text[:i+1])
			return object, text[i+1:], json.Valid(object)
		}
	}
	return nil, "", false
}
