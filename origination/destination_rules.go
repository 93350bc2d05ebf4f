package origination

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Rules restrict the destinations that may be dialled. The zero value allows all.
type Rules struct {
	everyone patterns
	accounts map[string]patterns // by account id
}

// patterns has regular expressions that are searched in the destination. A match of deny refuses it;
// if allow is not empty, no match of allow refuses it too. nil means "not set": an account inherits
// the general list.
type patterns struct{ allow, deny []*regexp.Regexp }

// ParseRules parses Rules.
func ParseRules(texts RuleTexts) (*Rules, error) {
	r := &Rules{accounts: map[string]patterns{}}
	var err error
	r.everyone.allow, err = compilePatterns(texts.Allow)
	if err != nil {
		return nil, err
	}

	r.everyone.deny, err = compilePatterns(texts.Deny)
	if err != nil {
		return nil, err
	}

	if err := r.readAccounts(texts.AccountAllow, func(p *patterns) *[]*regexp.Regexp { return &p.allow }); err != nil {
		return nil, err
	}

	return r, r.readAccounts(texts.AccountDeny, func(p *patterns) *[]*regexp.Regexp { return &p.deny })
}

func compilePatterns(texts []string) ([]*regexp.Regexp, error) {
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

		compiled, err := compilePatterns([]string{pattern})
		if err != nil {
			return err
		}

		own := r.accounts[account]
		*list(&own) = append(*list(&own), compiled...)
		r.accounts[account] = own
	}

	return nil
}

// HasAllowList reports whether patterns say what the account may dial. Check then takes a destination only if one
// of them matches it.
func (r *Rules) HasAllowList(accountID string) bool {
	return r.accounts[accountID].allow != nil || len(r.everyone.allow) > 0
}

// Check returns fault.Forbidden for a destination that the account may not dial.
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
		return forbidden("The account may not call this destination")
	}

	return nil
}
