package origination

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"trunkline/internal/fault"
)

const maxDestinationLength = 64 // characters

// ValidateDestination rejects destinations that are empty, too long, or contain control characters.
func ValidateDestination(destination string) error {
	switch {
	case !utf8.ValidString(destination):
		return badDestination("invalid", "The destination is not valid UTF-8")
	case strings.TrimSpace(destination) == "":
		return badDestination("required", "The destination is empty")
	case utf8.RuneCountInString(destination) > maxDestinationLength:
		return badDestination("too_long", "The destination has more than 64 characters")
	case strings.ContainsFunc(destination, unicode.IsControl):
		return badDestination("invalid", "The destination has control characters")
	}

	return nil
}

func badDestination(code, message string) error {
	return fault.InvalidField("destination", code, message)
}
