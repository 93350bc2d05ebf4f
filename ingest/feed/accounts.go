package feed

import "strings"

// Directory finds the ids of accounts.
type Directory interface {
	// Resolve finds an account by id, name or domain.
	Resolve(ref string) (id string, ok bool)
	// ByDomain finds an account by its domain, in any case.
	ByDomain(domain string) (id string, ok bool)
}

// NewAccounts returns the Accounts of a feed. It uses the feed's fixed account, else its rules in their
// order, else the directory's domains.
func NewAccounts(cfg Config, directory Directory) Accounts {
	a := &accountMap{fixed: cfg.Account, directory: directory}
	for _, rule := range cfg.Accounts {
		a.rules = append(a.rules, accountPattern{strings.Split(strings.ToLower(rule.Match), "*"), rule.Account})
	}
	return a
}

type accountMap struct {
	fixed     string
	rules     []accountPattern
	directory Directory
}

type accountPattern struct {
	parts   []string // the pattern in lower case, split at each *
	account string
}

// Account implements Accounts. Of several names that match a rule, the first one counts; an earlier
// rule takes precedence over an earlier name.
func (a *accountMap) Account(names ...string) string {
	if a.fixed != "" {
		return a.accountID(a.fixed)
	}
	for _, rule := range a.rules {
		for _, name := range names {
			if name != "" && rule.matches(strings.ToLower(name)) {
				return a.accountID(rule.account)
			}
		}
	}
	for _, name := range names {
		if id, ok := a.directory.ByDomain(name); ok {
			return id
		}
	}
	return ""
}

// accountID returns the id of the account that a setting names. If the directory does not have the
// account yet, ref is returned unchanged, and the normalizer checks it.
func (a *accountMap) accountID(ref string) string {
	if id, ok := a.directory.Resolve(ref); ok {
		return id
	}
	return ref
}

func (r accountPattern) matches(name string) bool {
	last := len(r.parts) - 1
	if last == 0 {
		return name == r.parts[0]
	}
	rest, ok := strings.CutPrefix(name, r.parts[0])
	if !ok {
		return false
	}
	for _, part := range r.parts[1:last] {
		if _, rest, ok = strings.Cut(rest, part); !ok {
			return false
		}
	}
	return strings.HasSuffix(rest, r.parts[last])
}
