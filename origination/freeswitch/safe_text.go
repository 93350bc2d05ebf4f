package freeswitch

import (
	"strings"
	"unicode"

	"trunkline/origination/dialtext"
)

// A value is inside braces, inside an application's argument, inside a command, and each of the three
// levels splits, unquotes and expands in its own way. There is no escaping: a value with characters
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

// isSafe reports whether text consists of letters, digits, ". _ -" and the characters of also, and can
// be sent unchanged. Letters beyond ASCII are allowed for names that a phone displays.
func isSafe(text, also string) bool {
	if strings.Contains(text, callSeparator) {
		return false
	}

	if strings.Contains(also, " ") {
		text = strings.Map(func(r rune) rune {
			if r > unicode.MaxASCII && r != unicode.ReplacementChar && unicode.IsLetter(r) {
				return -1
			}
			return r
		}, text)
	}

	return dialtext.Safe(text, also)
}

func checkValues(values ...dialtext.Value) error { return dialtext.Check(isSafe, values...) }
