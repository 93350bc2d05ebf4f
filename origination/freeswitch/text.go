package freeswitch

import (
	"fmt"
	"strings"
	"unicode"

	"trunkline/internal/fault"
)

// A value is inside braces, inside an application's argument, inside a command, and each of the three
// levels splits, unquotes and expands in its own way. Nothing is escaped: a value with characters
// other than letters, digits and a few that have no meaning at any level is refused.
const (
	numberChars          = "+*#" // besides letters, digits and . _ -
	domainChars          = ":"
	displayChars         = numberChars + " " // quoted where blanks split
	toneChars            = "%(),:/=[]@*+"    // from the administrator, as are the dial strings
	ownerDialChars       = numberChars + "@:/,|[]=%"
	destinationDialChars = numberChars + "@:/="
)

// callSeparator separates calls in one originate command.
const callSeparator = ":_:"

// safe reports whether text consists of letters, digits, ". _ -" and the characters of also, and can
// be sent unchanged. Letters beyond ASCII are allowed for names that a phone displays.
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

// placeholders maps a template's {names} to values.
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

// check returns an error for a value that cannot be sent safely.
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
