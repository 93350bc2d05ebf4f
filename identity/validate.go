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
	maxName     = 128 // characters
	maxDomain   = 253 // characters, as in DNS
	maxPresence = 64  // characters
	maxPassword = 1024
	maxSubject  = 255 // characters, as in OpenID Connect Core
	maxProblems = 50  // reported in one response
)

var accountID = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// problems collects what is wrong with each field.
type problems []fault.Field

func (p *problems) add(field, code, message string) {
	if len(*p) < maxProblems {
		*p = append(*p, fault.Field{Field: field, Code: code, Message: message})
	}
}

// fault returns nil when there is no problem.
func (p problems) fault(message string) error {
	if len(p) == 0 {
		return nil
	}
	return fault.Invalid(message, p...)
}

// text checks a field of up to most characters, each of which must be allowed.
func (p *problems) text(field, value string, most int, allowed func(rune) bool) {
	switch {
	case value == "":
		p.add(field, codeRequired, field+" is required")
	case utf8.RuneCountInString(value) > most:
		p.add(field, codeTooLong, fmt.Sprintf("%s has more than %d characters", field, most))
	case !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return !allowed(r) }):
		p.add(field, codeInvalid, field+" has a character that is not allowed")
	case strings.TrimSpace(value) != value:
		p.add(field, codeInvalid, field+" begins or ends with a space")
	}
}

func printable(r rune) bool { return unicode.IsPrint(r) }

func visible(r rune) bool { return unicode.IsPrint(r) && !unicode.IsSpace(r) }

func (a *NewAccount) check(prefix string, bad *problems) {
	if a.ID != "" && !accountID.MatchString(a.ID) {
		bad.add(prefix+"id", codeInvalid, "an account id is 1 to 64 of A-Z, a-z, 0-9, _, . and -")
	}
	bad.text(prefix+"name", a.Name, maxName, printable)
	bad.text(prefix+"domain", a.Domain, maxDomain, visible)
	if _, err := time.LoadLocation(a.TimeZone); err != nil || a.TimeZone == "Local" {
		bad.add(prefix+"time_zone", codeInvalid, prefix+"time_zone is a name of the IANA time zone database, as Europe/Berlin")
	}
}

func (u *NewUser) check(prefix string, bad *problems) {
	u.checkNames(prefix, bad)
	bad.password(prefix+"password", u.Password)
}

// checkNames checks all but the password.
func (u *NewUser) checkNames(prefix string, bad *problems) {
	bad.text(prefix+"username", u.Username, maxName, printable)
	bad.user(prefix, u.PresenceID, u.Role)
}

// user checks the fields of a user that can be changed.
func (p *problems) user(prefix, presenceID string, role Role) {
	if presenceID != "" {
		p.text(prefix+"presence_id", presenceID, maxPresence, visible)
	}
	if !role.Known() {
		p.add(prefix+"role", codeInvalid, prefix+"role is user or admin")
	}
}

const maxQuoted = 80

// quote quotes a caller's own text in a message, up to maxQuoted bytes.
func quote(text string) string {
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + "…"
	}
	return fmt.Sprintf("%q", text)
}
