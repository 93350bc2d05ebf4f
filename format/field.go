package format

import (
	"encoding/json"

	"trunkline/internal/jsonscan"
)

// Text returns a field of a foreign source as text, "" when it is no string.
func Text(v jsonscan.Value) string {
	text, _ := v.Text()
	return string(text)
}

// FirstText returns the first of the values that is a string and not empty.
func FirstText(values ...jsonscan.Value) string {
	for _, v := range values {
		if text, ok := v.Text(); ok && len(text) > 0 {
			return string(text)
		}
	}
	return ""
}

// FirstClock returns the first of the values that is a clock, in Unix seconds,
// 0 when none is.
func FirstClock(values ...jsonscan.Value) int64 {
	for _, v := range values {
		if s, ok := UnixSeconds(v); ok {
			return s
		}
	}
	return 0
}

// AccountText returns the account of a foreign source, which may leave it out or
// write null or "" for none.
func AccountText(v jsonscan.Value, field string) (string, error) {
	switch v.Kind() {
	case jsonscan.None, jsonscan.Null:
		return "", nil
	case jsonscan.String:
		return Text(v), nil
	}
	return "", RejectType(field, "a string")
}

// StrictText returns a string of one of our own formats, where null is a wrong
// type.
func StrictText(v jsonscan.Value, field string) (string, error) {
	switch v.Kind() {
	case jsonscan.None:
		return "", nil
	case jsonscan.String:
		return Text(v), nil
	}
	return "", RejectType(field, "a string")
}

// StrictClock returns a clock of one of our own formats in Unix seconds: absent
// (0), or a number.
func StrictClock(v jsonscan.Value, field string) (int64, error) {
	if v.Kind() == jsonscan.None {
		return 0, nil
	}
	if v.Kind() != jsonscan.Number {
		return 0, RejectType(field, "Unix seconds")
	}
	n, ok := Integer(v)
	if !ok || n < 0 {
		return 0, RejectRange(field)
	}
	n, _ = UnixSeconds(v)
	return n, nil
}

// Within reads the members in keys of a nested object into got; where v is no
// object it reads none.
func Within(v jsonscan.Value, keys jsonscan.Keys, got []jsonscan.Value) {
	if v.Kind() == jsonscan.Object {
		_ = keys.Scan(v, got) // v is part of a checked record
	}
}

// Object returns an object as it stands in the record, nil for anything else.
func Object(v jsonscan.Value) json.RawMessage {
	if v.Kind() != jsonscan.Object {
		return nil
	}
	return json.RawMessage(v)
}
