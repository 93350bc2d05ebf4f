package identity

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"trunkline/internal/fault"
)

// Codes of field faults.
const (
	codeRequired = "required"
	codeInvalid  = "invalid"
	codeTooLong  = "too_long"
	codeTooMany  = "too_many"
	codeTaken    = "taken"
)

const (
	maxNameLength       = 128 // characters
	maxDomainLength     = 253 // characters, as in DNS
	maxPresenceIDLength = 64  // characters
	maxPasswordLength   = 1024
	maxSubjectLength    = 255 // characters, as in OpenID Connect Core
	maxProblems         = 50  // reported in one response
)

var accountIDPattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// fieldProblems is a list of invalid fields.
type fieldProblems []fault.Field

func (p *fieldProblems) add(field, code, message string) {
	if len(*p) < maxProblems {
		*p = append(*p, fault.Field{Field: field, Code: code, Message: message})
	}
}

// asError returns the problems as fault.KindInvalid, or nil if there are none.
func (p fieldProblems) asError(message string) error {
	if len(p) == 0 {
		return nil
	}
	return fault.Invalid(message, p...)
}

// checkText checks a field of at most maxLength characters, each of which must be allowed.
func (p *fieldProblems) checkText(field, value string, maxLength int, allowed func(rune) bool) {
	switch {
	case value == "":
		p.add(field, codeRequired, field+" is required")
	case utf8.RuneCountInString(value) > maxLength:
		p.add(field, codeTooLong, fmt.Sprintf("%s has more than %d characters", field, maxLength))
	case !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return !allowed(r) }):
		p.add(field, codeInvalid, field+" has a character that is not allowed")
	case strings.TrimSpace(value) != value:
		p.add(field, codeInvalid, field+" begins or ends with a space")
	}
}

func printable(r rune) bool { return unicode.IsPrint(r) }

func printableNoSpace(r rune) bool { return unicode.IsPrint(r) && !unicode.IsSpace(r) }

func (a *NewAccount) check(prefix string, bad *fieldProblems) {
	if a.ID != "" && !accountIDPattern.MatchString(a.ID) {
		bad.add(prefix+"id", codeInvalid, "an account id is 1 to 64 of A-Z, a-z, 0-9, _, . and -")
	}

	bad.checkText(prefix+"name", a.Name, maxNameLength, printable)
	bad.checkText(prefix+"domain", a.Domain, maxDomainLength, printableNoSpace)
	_, err := time.LoadLocation(a.TimeZone)
	if err != nil || a.TimeZone == "Local" {
		bad.add(prefix+"time_zone", codeInvalid,
			prefix+"time_zone is a name of the IANA time zone database, as Europe/Berlin")
	}
}

func (u *NewUser) check(prefix string, bad *fieldProblems) {
	u.checkNames(prefix, bad)
	bad.checkPassword(prefix+"password", u.Password)
}

// checkNames checks all fields except the password.
func (u *NewUser) checkNames(prefix string, bad *fieldProblems) {
	bad.checkText(prefix+"username", u.Username, maxNameLength, printable)
	bad.checkUserFields(prefix, u.PresenceID, u.Role, u.Limits)
}

// checkUserFields checks the fields of a user that can be changed.
func (p *fieldProblems) checkUserFields(prefix, presenceID string, role Role, limits Limits) {
	if presenceID != "" {
		p.checkText(prefix+"presence_id", presenceID, maxPresenceIDLength, printableNoSpace)
	}
	p.checkRole(prefix, role, limits)
}

// checkRole checks a role and its limits.
func (p *fieldProblems) checkRole(prefix string, role Role, limits Limits) {
	if !role.Valid() {
		p.add(prefix+"role", codeInvalid, prefix+"role is admin, supervisor, agent, auditor or user")
		return
	}
	p.checkLimits(prefix, role, limits)
}

const maxQuotedLength = 80

// quote returns a caller's text in quotes for a message, at most maxQuotedLength bytes of it.
func quote(text string) string {
	if len(text) > maxQuotedLength {
		text = strings.ToValidUTF8(text[:maxQuotedLength], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}
