package identity

import (
	"maps"
	"slices"

	"trunkline/event"
)

// Selection selects the messages that a filter of an account admits, by their headers. It
// is immutable. Without named accounts it selects those that are below the account at the
// time of the match; named accounts are checked by NewSelection only.
type Selection struct {
	root          string   // the filter's account
	namedAccounts []string // accounts that the filter names; nil selects root and all below it
	types         event.TypeSet
	names         event.NameSet
	agents        map[string]struct{} // nil selects all, also messages without an agent
	queues        map[string]struct{} // nil selects all
	calls         map[string]struct{} // nil selects all
}

// NewSelection returns the selection of an account's filter, nil if none of its accounts
// exists.
func NewSelection(accountID string, f Filter, tree *Tree) *Selection {
	types, _, ok := event.TypeSetOf(f.EventTypes)
	_, known := tree.Account(accountID)
	if !ok || !known {
		return nil
	}

	s := &Selection{root: accountID, types: types, names: event.NamesOf(f.Names), agents: idSet(f.AgentIDs),
		queues: idSet(f.QueueIDs), calls: idSet(f.CallIDs)}
	for _, id := range f.AccountIDs {
		if tree.Contains(accountID, id) {
			s.namedAccounts = append(s.namedAccounts, id)
		}
	}

	if len(f.AccountIDs) > 0 && s.namedAccounts == nil {
		return nil
	}

	return s
}

func idSet(ids []string) map[string]struct{} {
	if len(ids) == 0 {
		return nil
	}
	set := make(map[string]struct{}, len(ids))
	for _, id := range ids {
		set[id] = struct{}{}
	}
	return set
}

// Accounts returns the accounts whose messages are selected. If below is true, messages
// of all accounts below them are selected too.
func (s *Selection) Accounts() (ids []string, below bool) {
	if s.namedAccounts == nil {
		return []string{s.root}, true
	}
	return s.namedAccounts, false
}

// Admits reports whether a message of one of the selection's accounts is selected. A
// message without facts has the name NameOther and no ids.
func (s *Selection) Admits(class event.TypeSet, name event.NameSet, agent, queue, call string) bool {
	return s.types&class != 0 && s.names&name != 0 && setAdmits(s.agents, agent) && setAdmits(s.queues, queue) &&
		setAdmits(s.calls, call)
}

// Equal reports whether s selects the same messages as other.
func (s *Selection) Equal(other *Selection) bool {
	return s.root == other.root && slices.Equal(s.namedAccounts, other.namedAccounts) && s.types == other.types &&
		s.names == other.names &&
		equalSets(s.agents, other.agents) && equalSets(s.queues, other.queues) && equalSets(s.calls, other.calls)
}

func equalSets(a, b map[string]struct{}) bool { return (a == nil) == (b == nil) && maps.Equal(a, b) }

func setAdmits(set map[string]struct{}, id string) bool {
	if set == nil {
		return true
	}
	_, ok := set[id]
	return ok
}
