package fanout

import (
	"trunkline/event"
	"trunkline/identity"
)

// filter selects the messages of a subscriber: its token's accounts and event
// types, as far as it may see them. It is immutable; a changed permission
// replaces it.
type filter struct {
	root     string              // the subscriber's own account: it sees this one and those below
	accounts map[string]struct{} // the accounts its login named; nil: all below root
	types    event.TypeSet
}

// newFilter returns the filter of a token with the current account tree, nil when
// none of the token's accounts is accessible.
func newFilter(p *identity.Principal, tree *identity.Tree) *filter {
	types, _, ok := event.SetOf(p.EventTypes)
	if _, known := tree.Account(p.AccountID); !ok || !known {
		return nil
	}
	f := &filter{root: p.AccountID, types: types}
	if len(p.AccountIDs) == 0 {
		return f
	}
	f.accounts = make(map[string]struct{}, len(p.AccountIDs))
	for _, id := range p.AccountIDs {
		if tree.Contains(p.AccountID, id) {
			f.accounts[id] = struct{}{}
		}
	}
	if len(f.accounts) == 0 {
		return nil
	}
	return f
}

// admits reports whether the message matches the filter.
func (f *filter) admits(m *frame, tree *identity.Tree) bool {
	return f.types&m.class != 0 && f.sees(m.account, tree)
}

// sees reports whether the filter includes the account.
func (f *filter) sees(account string, tree *identity.Tree) bool {
	if f.accounts != nil {
		_, ok := f.accounts[account]
		return ok
	}
	return tree.Contains(f.root, account)
}

func (f *filter) equal(g *filter) bool {
	if f.root != g.root || f.types != g.types || len(f.accounts) != len(g.accounts) ||
		(f.accounts == nil) != (g.accounts == nil) {
		return false
	}
	for id := range f.accounts {
		if _, ok := g.accounts[id]; !ok {
			return false
		}
	}
	return true
}
