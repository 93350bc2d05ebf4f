package normalizer

import (
	"net/url"

	"trunkline/internal/jsonscan"
)

// str is a field of a foreign source: its text, "" when it is no string.
func str(v jsonscan.Value) string {
	text, _ := v.Text()
	return string(text)
}

// decoded is str of a FreeSWITCH value, which may be URL-encoded.
func decoded(v jsonscan.Value) string {
	text, _ := v.Text()
	for _, c := range text {
		if c == '%' {
			return unescape(string(text))
		}
	}
	return string(text)
}

// unescape undoes URL-encoding; what is not URL-encoded stays as it is.
func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// firstStr is the first of the values that is a string with something in it.
func firstStr(values ...jsonscan.Value) string {
	for _, v := range values {
		if text, ok := v.Text(); ok && len(text) > 0 {
			return string(text)
		}
	}
	return ""
}

// firstClock is the first of the values that is a clock, 0 when none is.
func firstClock(values ...jsonscan.Value) int64 {
	for _, v := range values {
		if s, ok := unixSeconds(v); ok {
			return s
		}
	}
	return 0
}

// named is the account of a foreign source, which may leave it out or write
// null or "" for "none".
func named(v jsonscan.Value, field string) (string, error) {
	switch v.Kind() {
	case jsonscan.None, jsonscan.Null:
		return "", nil
	case jsonscan.String:
		return str(v), nil
	}
	return "", wrongType(field, "a string")
}

// ownStr is a string of one of our own formats, where null is a wrong type.
func ownStr(v jsonscan.Value, field string) (string, error) {
	switch v.Kind() {
	case jsonscan.None:
		return "", nil
	case jsonscan.String:
		return str(v), nil
	}
	return "", wrongType(field, "a string")
}

// within reads the members in keys from a nested object into got; where v is no
// object none is there.
func within(v jsonscan.Value, keys jsonscan.Keys, got []jsonscan.Value) {
	if v.Kind() == jsonscan.Object {
		_ = keys.Scan(v, got) // v is part of a checked record
	}
}
