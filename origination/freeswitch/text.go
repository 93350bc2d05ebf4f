package freeswitch

import (
	"fmt"
	"strings"
	"unicode"

	"trunkline/internal/fault"
)

// A value stands inside braces, inside an application's argument, inside a
// command, and each of the three splits, unquotes and expands in its own way. So
// nothing is escaped: a value that holds more than letters, digits and the few
// characters that mean nothing anywhere is refused.
const (
	numberChars          = "+*#" // beside letters, digits and . _ -
	domainChars          = ":"
	displayChars         = numberChars + " " // quoted, where blanks split
	toneChars            = "%(),:/=[]@*+"    // the administrator's own, as are the dial strings
	ownerDialChars       = numberChars + "@:/,|[]=%"
	destinationDialChars = numberChars + "@:/="
)

// callSeparator separates calls in one originate command.
const callSeparator = ":_:"

// safe says whether the text is made of letters, digits, ". _ -" and the
// characters of also, and can be sent as it is. Letters beyond ASCII are for
// what a phone displays.
func safe(text, also string) bool {
	if strings.Contains(text, callSeparator) {
		return false
	}
	for _, r := range text {
		switch {
		case r == '.' || r == '_' || r == '-' || strings.ContainsRune(also, r):
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)):
		case r > unicode.MaxASCII && r != unicode.ReplacementChar && strings.Contains(also, " ") && unicode.IsLetter(r):
		default:
			return false
		}
	}
	return true
}

// placeholders are the values of a template's {names}.
type placeholders map[string]string

func (b placeholders) fill(template string) (string, error) {
	var out strings.Builder
	for {
		before, rest, open := strings.Cut(template, "{")
		out.WriteString(before)
		if !open {
			return out.String(), nil
		}
		name, after, closed := strings.Cut(rest, "}")
		value, known := b[name]
		if !closed || !known {
			return "", fmt.Errorf("unknown {%s}", name)
		}
		out.WriteString(value)
		template = after
	}
}

// check refuses a value that cannot be carried safely.
func check(field, value, also string, most int) error {
	switch {
	case value == "":
		return fault.InvalidField(field, "required", "the "+field+" is missing")
	case len(value) > most:
		return fault.InvalidField(field, "too_long", "the "+field+" is too long")
	case !safe(value, also):
		return fault.InvalidField(field, "invalid", "the "+field+" holds a character that cannot be dialled")
	}
	return nil
}
