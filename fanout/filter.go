package fanout

import (
	"trunkline/event"
	"trunkline/identity"
)

// filter is what a subscriber may and wants to see. It is immutable; a changed
// permission replaces it.
type filter struct {
	root     string              // the subscriber's own account: it sees it and what is below
	accounts map[string]struct{} // the accounts its login named; nil: all below root
	types    event.TypeSet
}

// newFilter is the filter of a token as the tree stands now; nil when nothing
// is left of what it named.
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

// admits says whether the filter lets the message through.
func (f *filter) admits(m *frame, tree *identity.Tree) bool {
	return f.types&m.class != 0 && f.sees(m.account, tree)
}

// sees says whether the filter lets the account's events through.
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
