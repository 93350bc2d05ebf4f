package identity

import (
	"strings"
	"unicode/utf8"
)

// storable reports whether a database can have this text at all: PostgreSQL
// refuses zero bytes and invalid UTF-8, so nothing stored equals such a text.
func storable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}
