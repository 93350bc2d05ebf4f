// Package dialtext fills dial strings with the values of an order and checks the values. Drivers of
// platforms that cannot escape a value refuse one with a character that has a meaning there.
package dialtext

import (
	"fmt"
	"strings"
	"unicode"

	"trunkline/internal/fault"
)

// Safe reports whether text consists of ASCII letters, digits, ". _ -" and the characters of also.
func Safe(text, also string) bool {
	for _, r := range text {
		switch {
		case r == '.' || r == '_' || r == '-' || strings.ContainsRune(also, r):
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)):
		default:
			return false
		}
	}
	return true
}

// Value is a value of an order.
type Value struct {
	Field, Text string
	AlsoAllowed string // characters allowed besides letters, digits and ". _ -"
	MaxBytes    int    // largest length in bytes
}

// Check returns an error for the first value that cannot be sent. safe is Safe or the platform's own.
func Check(safe func(text, also string) bool, values ...Value) error {
	for _, v := range values {
		switch {
		case v.Text == "":
			return fault.InvalidField(v.Field, "required", "the "+v.Field+" is missing")
		case len(v.Text) > v.MaxBytes:
			return fault.InvalidField(v.Field, "too_long", "the "+v.Field+" is too long")
		case !safe(v.Text, v.AlsoAllowed):
			return fault.InvalidField(v.Field, "invalid", "the "+v.Field+" holds a character that cannot be dialled")
		}
	}

	return nil
}

// Placeholders maps the {names} of a template to values.
type Placeholders map[string]string

// Fill replaces the {names} in template. A name without a value is an error.
func (p Placeholders) Fill(template string) (string, error) {
	var out strings.Builder
	for {
		before, rest, open := strings.Cut(template, "{")
		out.WriteString(before)
		if !open {
			return out.String(), nil
		}

		name, after, closed := strings.Cut(rest, "}")
		value, known := p[name]
		if !closed || !known {
			return "", fmt.Errorf("unknown {%s}", name)
		}

		out.WriteString(value)
		template = after
	}
}
