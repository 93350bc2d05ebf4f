package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/ccojocar/zxcvbn-go/data"

	"trunkline/internal/fault"
)

const (
	uncheckedLength   = 12 // characters; from this length on, a password may be on a list
	minPasswordLength = 8  // characters; shorter than uncheckedLength, it must be on no list
)

const (
	codeTooShort  = "too_short"
	codeTooCommon = "too_common"
)

// passwordLists has the names of the lists of frequent passwords, English words and names.
var passwordLists = []string{"Passwords", "English", "MaleNames", "FemaleNames", "Surnames"}

// commonPasswords returns the entries with at least minPasswordLength and fewer than
// uncheckedLength characters, in lower case. The first call reads the lists.
var commonPasswords = sync.OnceValues(func() (map[string]struct{}, error) {
	common := make(map[string]struct{})
	for _, name := range passwordLists {
		text, err := data.Asset("data/" + name + ".json")
		if err != nil {
			return nil, fmt.Errorf("reading the list of common passwords: %w", err)
		}
		var list struct{ List []string }
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("reading the list of common passwords: %w", err)
		}
		if len(list.List) == 0 {
			return nil, errors.New("reading the list of common passwords: " + name + " is empty")
		}
		for _, entry := range list.List {
			n := utf8.RuneCountInString(entry)
			if n >= minPasswordLength && n < uncheckedLength {
				common[strings.ToLower(entry)] = struct{}{}
			}
		}
	}
	return common, nil
})

// checkPassword checks the form of a password in a request.
func (p *problems) checkPassword(field, password string) {
	switch {
	case password == "":
		p.add(field, codeRequired, field+" is required")
	case len(password) > maxPassword:
		p.add(field, codeTooLong, fmt.Sprintf("%s has more than %d bytes", field, maxPassword))
	}
}

// checkStrength checks a new password, in addition to its form.
func (p *problems) checkStrength(field, password string) error {
	length := utf8.RuneCountInString(password)
	switch {
	case length >= uncheckedLength || password == "":
		return nil
	case length < minPasswordLength:
		p.add(field, codeTooShort, fmt.Sprintf(
			"%s has fewer than %d characters, or %d where it is on no list of common passwords", field, uncheckedLength, minPasswordLength))
		return nil
	}
	common, err := commonPasswords()
	if err != nil {
		return fault.Internal(err, "The password could not be checked")
	}
	_, known := common[strings.ToLower(password)]
	if known {
		p.add(field, codeTooCommon, fmt.Sprintf(
			"%s is on a list of common passwords; choose another, or one of %d characters or more", field, uncheckedLength))
	}
	return nil
}

// checkNewPassword checks form and strength of a new password.
func checkNewPassword(field, password string) error {
	var bad problems
	bad.checkPassword(field, password)
	if err := bad.checkStrength(field, password); err != nil {
		return err
	}
	return bad.asError(badPassword)
}
