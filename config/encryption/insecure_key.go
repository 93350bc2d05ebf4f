package encryption

import (
	"slices"
	"strings"
)

// Values that are refused as a key; defaultSalt is also refused as a salt.
const defaultSalt = "default_salt"

var insecureValues = []string{"default_encrypted_key", "default", "test", defaultSalt}

// guessableWords are refused as a key too, also repeated and with digits behind them.
var guessableWords = []string{"password", "passwort", "changeme", "change_me", "change-me", "changeit", "secret",
	"letmein", "qwerty", "admin"}

// normalize removes differences that do not make a value more secure: case and surrounding
// white space.
func normalize(value string) string { return strings.ToLower(strings.TrimSpace(value)) }

// isInsecureKey reports whether a key is a known default or a guessable word, with or
// without digits behind it, one repeated character, a sequence ("0123…", "zyxw…"), or a
// repetition of one of these, of any length and case.
func isInsecureKey(key string) bool {
	chars := []rune(normalize(key))
	if len(chars) == 0 {
		return key != "" // only white space
	}
	unit := chars[:period(chars)]
	word := []rune(strings.TrimRight(string(chars), "0123456789"))
	return isGuessable(chars) || isGuessable(unit) || isGuessable(word) ||
		len(word) > 0 && isGuessable(word[:period(word)]) ||
		isGuessable([]rune(strings.TrimRight(string(unit), "0123456789"))) || isRun(unit, 1) || isRun(unit, -1)
}

func isGuessable(chars []rune) bool {
	return slices.Contains(insecureValues, string(chars)) || slices.Contains(guessableWords, string(chars))
}

// period returns the length of the shortest prefix of which chars is a repetition; the
// last repetition may be incomplete.
func period(chars []rune) int {
	// border[i] is the length of the longest proper prefix of chars[:i+1] that is also its
	// suffix.
	border := make([]int, len(chars))
	for i, n := 1, 0; i < len(chars); i++ {
		for n > 0 && chars[i] != chars[n] {
			n = border[n-1]
		}

		if chars[i] == chars[n] {
			n++
		}

		border[i] = n
	}

	return len(chars) - border[len(border)-1]
}

// alphabets are the sequences that isRun recognizes; the first character follows the last.
var alphabets = []string{"0123456789", "abcdefghijklmnopqrstuvwxyz", "0123456789abcdef",
	"0123456789abcdefghijklmnopqrstuvwxyz"}

// isRun reports whether every character is the one before it plus step, by code point or
// in one of the alphabets. A single character is a run.
func isRun(chars []rune, step int) bool {
	byCode := func(a, b rune) bool { return b == a+rune(step) }
	if allPairs(chars, byCode) {
		return true
	}

	return slices.ContainsFunc(alphabets, func(alphabet string) bool {
		return allPairs(chars, func(a, b rune) bool {
			i, j := strings.IndexRune(alphabet, a), strings.IndexRune(alphabet, b)
			return i >= 0 && j == (i+step+len(alphabet))%len(alphabet)
		})
	})
}

// allPairs reports whether next returns true for each pair of adjacent characters.
func allPairs(chars []rune, next func(a, b rune) bool) bool {
	for i := 1; i < len(chars); i++ {
		if !next(chars[i-1], chars[i]) {
			return false
		}
	}
	return true
}
