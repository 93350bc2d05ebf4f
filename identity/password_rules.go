package identity

import (
	"context"
	"fmt"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ccojocar/zxcvbn-go"
	"github.com/ccojocar/zxcvbn-go/frequency"
	"github.com/ccojocar/zxcvbn-go/match"
	"github.com/ccojocar/zxcvbn-go/matching"
	"golang.org/x/text/unicode/norm"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

const (
	minPasswordLength = 8 // characters
	// minPasswordBits is the entropy that a new password has at least: some 500 million
	// guesses find it, of which the limits of logins allow 3,000 a day.
	minPasswordBits = 30
	// maxEstimatedLength is the number of characters that are estimated, because the time
	// grows with their square.
	maxEstimatedLength = 64
)

const (
	codeTooShort  = "too_short"
	codeTooCommon = "too_common"
)

// checkPassword checks the form of a password in a request.
func (p *fieldProblems) checkPassword(field, password string) {
	switch {
	case password == "":
		p.add(field, codeRequired, field+" is required")
	case len(password) > maxPasswordLength:
		p.add(field, codeTooLong, fmt.Sprintf("%s has more than %d bytes", field, maxPasswordLength))
	}
}

// productWords are known to whoever attacks this product.
var productWords = []string{"trunkline", "portal", "callcenter", "telephony"}

// ownWords returns the words of the user and account that attackers try first.
func ownWords(username string, account Account) (words []string) {
	words = append(words, productWords...)
	for _, text := range []string{username, account.ID, account.Name, account.Domain} {
		text = strings.ToLower(text)
		for _, word := range append(strings.FieldsFunc(text, notAlphanumeric), text) {
			if len(word) > 2 {
				words = append(words, word)
			}
		}
	}

	return words
}

func notAlphanumeric(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// The library's matchers have dictionaries of their own, made of these lists, which are not read again.
func init() { clear(frequency.Lists) }

// Substitutions of letters in passwords, as attackers undo them.
var (
	symbolLetters = strings.NewReplacer("@", "a", "$", "s", "!", "i", "0", "o", "3", "e", "|", "l", "+", "t", "(", "c",
		"{", "c", "[", "c", "<", "c", "%", "x")
	allLetters = strings.NewReplacer("4", "a", "8", "b", "6", "g", "9", "g", "1", "i", "5", "s", "7", "t", "2", "z")
	oneIsL     = strings.NewReplacer("1", "l", "4", "a", "5", "s", "7", "t")
)

// passwordBits estimates the entropy of a password for somebody who knows the words: the
// lowest of it as it is and with its substitutions undone. The library's own search for
// substitutions tries all combinations of them, which can take minutes.
func passwordBits(password string, words []string) float64 {
	password = norm.NFKC.String(password)
	runes := []rune(password)
	if len(runes) > maxEstimatedLength {
		password = string(runes[:maxEstimatedLength])
	}

	letters := symbolLetters.Replace(strings.ToLower(password))
	bits := math.Inf(1)
	for _, variant := range []string{password, letters, allLetters.Replace(letters), oneIsL.Replace(letters)} {
		withoutSubstitutions := func(m match.Matcher) bool { return m.ID == matching.L33TMatcherName }
		bits = min(bits, zxcvbn.PasswordStrength(variant, words, withoutSubstitutions).Entropy)
	}

	return bits
}

// checkStrength checks a new password, in addition to its form. words are those that
// attackers try first.
func (p *fieldProblems) checkStrength(field, password string, words []string) {
	switch {
	// checkPassword has reported these.
	case password == "" || len(password) > maxPasswordLength:
	case utf8.RuneCountInString(password) < minPasswordLength:
		p.add(field, codeTooShort, fmt.Sprintf("%s has fewer than %d characters", field, minPasswordLength))
	case !utf8.ValidString(password) || passwordBits(password, words) < minPasswordBits:
		p.add(field, codeTooCommon,
			field+" is too easy to guess: choose a longer one, of several words that do not belong together, "+
				"without names of the user and the account, dates and rows of keys")
	}
}

// wordsOf returns the words of a user of an account, which may not exist.
func wordsOf(ctx context.Context, db sqldb.Runner, accountRef, username string) ([]string, error) {
	account, err := resolveAccount(ctx, db, accountRef)
	if err != nil && fault.KindOf(err) != fault.KindNotFound {
		return nil, err
	}
	return ownWords(username, account), nil
}

// checkNewPassword checks form and strength of a new password.
func checkNewPassword(field, password string, words []string) error {
	var bad fieldProblems
	bad.checkPassword(field, password)
	bad.checkStrength(field, password, words)
	return bad.asError(badPassword)
}
