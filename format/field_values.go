package format

import (
	"encoding/json"
	"math"
	"strings"

	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// Text returns a field of a foreign source as text, "" if it is not a string.
func Text(v jsonscan.Value) string {
	text, _ := v.Text()
	return string(text)
}

// FirstText returns the first of the values that is a non-empty string.
func FirstText(values ...jsonscan.Value) string {
	for _, v := range values {
		if text, ok := v.Text(); ok && len(text) > 0 {
			return string(text)
		}
	}
	return ""
}

// FirstTimestamp returns the first of the values that is a timestamp, in Unix
// milliseconds; 0 if none is.
func FirstTimestamp(values ...jsonscan.Value) int64 {
	for _, v := range values {
		if ms, ok := UnixMillis(v); ok {
			return ms
		}
	}
	return 0
}

// DurationBetween returns the time from one timestamp to a later one, unknown if either is
// missing.
func DurationBetween(from, to jsonscan.Value) event.Millis {
	start, ok := UnixMillis(from)
	end, ok2 := UnixMillis(to)
	if !ok || !ok2 {
		return event.Millis{}
	}
	return event.MillisOf(end - start)
}

// MillisOfSeconds returns a duration that the source writes in whole seconds.
func MillisOfSeconds(v jsonscan.Value) event.Millis {
	n, ok := Integer(v)
	if !ok || n < 0 || n > math.MaxInt64/1000 {
		return event.Millis{}
	}
	return event.MillisOf(n * 1000)
}

// AccountText returns the account of a foreign source, which may omit it or write null
// or "" for none.
func AccountText(v jsonscan.Value, field string) (string, error) {
	switch v.Kind() {
	case jsonscan.None, jsonscan.Null:
		return "", nil
	case jsonscan.String:
		return Text(v), nil
	}
	return "", RejectType(field, "a string")
}

// StrictText returns a string of one of Trunkline's own formats, where null is a wrong
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

// StrictTimestamp returns a timestamp of one of Trunkline's own formats in Unix
// milliseconds: absent (0), or a number of seconds.
func StrictTimestamp(v jsonscan.Value, field string) (int64, error) {
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

	// 0 for a zero, which is unknown.
	n, _ = UnixMillis(v)
	return n, nil
}

// BothSpellings numbers the names in order, each in Dash-Case and in snake_case.
func BothSpellings(names ...string) jsonscan.Keys {
	keys := jsonscan.KeysOf(names...)
	for i, name := range names {
		keys[strings.ToLower(strings.ReplaceAll(name, "-", "_"))] = i
	}
	return keys
}

// Object returns an object unchanged, nil for any other value.
func Object(v jsonscan.Value) json.RawMessage {
	if v.Kind() != jsonscan.Object {
		return nil
	}
	return json.RawMessage(v)
}
