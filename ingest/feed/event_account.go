package feed

import (
	"slices"
	"strings"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// accountRefs returns the accounts that the settings name, none where the directory decides.
func (c *Config) accountRefs() (refs []string) {
	if c.Account != "" {
		return []string{c.Account}
	}
	for _, rule := range c.Accounts {
		if !slices.Contains(refs, rule.Account) {
			refs = append(refs, rule.Account)
		}
	}
	return refs
}

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
	a := &accountMap{fixedAccount: cfg.Account, directory: directory}
	for _, rule := range cfg.Accounts {
		a.rules = append(a.rules, accountPattern{strings.Split(strings.ToLower(rule.Match), "*"), rule.Account})
	}
	return a
}

// accountMap implements Accounts by the settings of a feed.
type accountMap struct {
	fixedAccount string // the setting account; "": rules and directory decide
	rules        []accountPattern
	directory    Directory
}

// accountPattern is an AccountRule.
type accountPattern struct {
	parts   []string // the pattern in lower case, split at each *
	account string   // id, name or domain
}

// Account implements Accounts. Of several names that match a rule, the first one counts; an earlier
// rule takes precedence over an earlier name.
func (a *accountMap) Account(names ...string) string {
	if a.fixedAccount != "" {
		return a.accountID(a.fixedAccount)
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

// HasSent reports whether a feed has sent a record.
func HasSent(r *kafka.Record) bool {
	return strings.HasPrefix(string(r.Header(event.HeaderSource)), sourcePrefix)
}

// FindAccount returns the account of a record whose account a feed did not find, by the rules of the record's
// feed and the directory as they are at the time of the call. It returns "" if there is none, or if no feed
// has sent the record.
func FindAccount(feeds []Config, directory Directory, r *kafka.Record) string {
	if !HasSent(r) {
		return ""
	}

	var cfg Config // of a feed that is not in the settings: the directory's domains
	i := slices.IndexFunc(feeds, func(c Config) bool { return c.Source() == string(r.Header(event.HeaderSource)) })
	if i >= 0 {
		cfg = feeds[i]
	}

	if len(r.Key) > 0 {
		ref := string(r.Key)
		id, _ := directory.Resolve(ref)
		if id != ref && !slices.Contains(cfg.accountRefs(), ref) {
			return "" // the id of a deleted account, which may be another's name
		}
		return id // of what a rule names, which the directory did not have
	}

	names := strings.Split(string(r.Header(event.HeaderAccountNames)), "\n")
	account := NewAccounts(cfg, directory).Account(names...)
	if account != "" || cfg.Kind != KindKazoo {
		return account
	}

	// An account may have Kazoo's id. One that has it as its name, which its administrator chooses, is not meant.
	id, _ := directory.Resolve(names[0])
	if id != names[0] {
		return ""
	}

	return id
}

// joinNames returns the value of event.HeaderAccountNames.
func joinNames(names []string) string {
	var lines []string
	for _, name := range names {
		line := strings.ReplaceAll(name, "\n", " ")
		if line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// accountID returns the id of the account that a setting names. If the directory does not have the
// account yet, ref is returned unchanged, and the normalizer checks it.
func (a *accountMap) accountID(ref string) string {
	if id, ok := a.directory.Resolve(ref); ok {
		return id
	}
	return ref
}

// matches reports whether a name in lower case is one of the pattern.
func (r accountPattern) matches(name string) bool {
	last := len(r.parts) - 1
	if last == 0 {
		return name == r.parts[0]
	}

	rest, ok := strings.CutPrefix(name, r.parts[0])
	if !ok {
		return false
	}

	// The first place of each part leaves the most for those behind it.
	for _, part := range r.parts[1:last] {
		_, rest, ok = strings.Cut(rest, part)
		if !ok {
			return false
		}
	}

	return strings.HasSuffix(rest, r.parts[last])
}
