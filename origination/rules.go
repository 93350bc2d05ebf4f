package origination

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"trunkline/internal/fault"
)

// Rules say which destinations may be dialled. Without any, all may be.
type Rules struct {
	everyone patterns
	accounts map[string]patterns
}

// patterns are regular expressions that are looked for in the destination. What
// a denying one is found in is refused; where there are allowing ones, so is
// what none of them is found in. nil is "not set", which an account inherits.
type patterns struct{ allow, deny []*regexp.Regexp }

// RuleTexts are Rules as an operator writes them. Those of accounts are written
// ACCOUNT=PATTERN, and take the place of everyone's list of the same kind.
type RuleTexts struct {
	Allow, Deny, AccountAllow, AccountDeny []string
}

// ParseRules reads Rules.
func ParseRules(texts RuleTexts) (*Rules, error) {
	r := &Rules{accounts: map[string]patterns{}}
	var err error
	if r.everyone.allow, err = compile(texts.Allow); err != nil {
		return nil, err
	}
	if r.everyone.deny, err = compile(texts.Deny); err != nil {
		return nil, err
	}
	if err := r.readAccounts(texts.AccountAllow, func(p *patterns) *[]*regexp.Regexp { return &p.allow }); err != nil {
		return nil, err
	}
	return r, r.readAccounts(texts.AccountDeny, func(p *patterns) *[]*regexp.Regexp { return &p.deny })
}

func compile(texts []string) ([]*regexp.Regexp, error) {
	var all []*regexp.Regexp
	for _, text := range texts {
		one, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("%q is not a regular expression", text)
		}
		all = append(all, one)
	}
	return all, nil
}

func (r *Rules) readAccounts(texts []string, list func(*patterns) *[]*regexp.Regexp) error {
	for _, text := range texts {
		account, pattern, ok := strings.Cut(text, "=")
		if !ok || account == "" {
			return fmt.Errorf("%q is not written ACCOUNT=PATTERN", text)
		}
		compiled, err := compile([]string{pattern})
		if err != nil {
			return err
		}
		own := r.accounts[account]
		*list(&own) = append(*list(&own), compiled...)
		r.accounts[account] = own
	}
	return nil
}

// Check refuses a destination that the account may not dial (fault.Forbidden).
func (r *Rules) Check(accountID, destination string) error {
	in := func(p *regexp.Regexp) bool { return p.MatchString(destination) }
	own, allow, deny := r.accounts[accountID], r.everyone.allow, r.everyone.deny
	if own.allow != nil {
		allow = own.allow
	}
	if own.deny != nil {
		deny = own.deny
	}
	if slices.ContainsFunc(deny, in) || len(allow) > 0 && !slices.ContainsFunc(allow, in) {
		const message = "The account may not call this destination"
		return &fault.Error{Kind: fault.KindForbidden, Message: message,
			Fields: []fault.Field{{Field: "destination", Code: "not_allowed", Message: message}}}
	}
	return nil
}
