package fanout

import (
	"maps"

	"trunkline/event"
	"trunkline/identity"
)

// filter selects the messages of a subscriber: the token's filter, limited to accounts
// that it may access and to what its role sees. It is immutable; after a permission change the subscriber gets a
// new one.
type filter struct {
	root       string // the subscriber's own account; it may access this one and its descendants
	accounts   idSet  // the accounts named at login; nil means root and all its descendants
	types      event.TypeSet
	names      event.NameSet
	agents     idSet                // nil means all, also messages without an agent
	queues     idSet                // nil means all
	calls      idSet                // nil means all
	visibility *identity.Visibility // nil: the role hides nothing
}

// idSet is a set of ids; nil means every id.
type idSet map[string]struct{}

func newIDSet(ids []string) idSet {
	if len(ids) == 0 {
		return nil
	}
	s := make(idSet, len(ids))
	for _, id := range ids {
		s[id] = struct{}{}
	}
	return s
}

func (s idSet) has(id string) bool {
	if s == nil {
		return true
	}
	_, ok := s[id]
	return ok
}

func (s idSet) equal(t idSet) bool { return (s == nil) == (t == nil) && maps.Equal(s, t) }

// newFilter returns the filter of a token for the current account tree and role, or nil if
// none of the token's accounts is accessible.
func newFilter(p *identity.Principal, directory Directory) *filter {
	tree, visibility := directory.Tree(), directory.VisibilityOf(p)
	types, _, ok := event.TypeSetOf(p.EventTypes)
	_, known := tree.Account(p.AccountID)
	if !ok || !known || visibility.AdmitsNone() {
		return nil
	}
	if !visibility.SeesTranscripts() {
		types &^= event.OwnTranscript
	}

	f := &filter{root: p.AccountID, types: types, names: event.NamesOf(p.Names),
		agents: newIDSet(p.AgentIDs), queues: newIDSet(p.QueueIDs), calls: newIDSet(p.CallIDs)}
	if !visibility.AdmitsAll() {
		f.visibility = visibility
	}
	if len(p.AccountIDs) == 0 {
		return f
	}

	f.accounts = make(idSet, len(p.AccountIDs))
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

// matches reports whether the message matches the filter.
func (f *filter) matches(m *frame, tree *identity.Tree) bool {
	return f.types&m.typeBits != 0 && f.matchesFacts(m) && f.matchesAccount(m.account, tree)
}

// matchesFacts reports whether the message's facts match. Old records have no facts;
// they match only as NameOther without agent, queue and call.
func (f *filter) matchesFacts(m *frame) bool {
	return f.names&m.name != 0 && f.agents.has(m.ids.agent()) && f.queues.has(m.ids.queue()) &&
		f.calls.has(m.ids.call()) &&
		(f.visibility == nil || f.visibility.Admits(m.account, m.ids.agent(), m.ids.queue(), m.ids.otherQueues()))
}

// seesQueue reports whether the role and the filter show the queue's figures.
func (f *filter) seesQueue(queue string) bool {
	return f.queues.has(queue) && (f.visibility == nil || f.visibility.SeesQueue(queue))
}

// matchesAccount reports whether the filter includes the account.
func (f *filter) matchesAccount(account string, tree *identity.Tree) bool {
	if f.accounts != nil {
		return f.accounts.has(account)
	}
	return tree.Contains(f.root, account)
}

func (f *filter) equal(g *filter) bool {
	return f.root == g.root && f.types == g.types && f.names == g.names && f.accounts.equal(g.accounts) &&
		(f.visibility == nil) == (g.visibility == nil) && (f.visibility == nil || f.visibility.Equal(g.visibility)) &&
		f.agents.equal(g.agents) && f.queues.equal(g.queues) && f.calls.equal(g.calls)
}
