package identity

import (
	"maps"
	"slices"

	"trunkline/event"
)

// Selection selects the messages that a filter of an account admits, by their
// headers. It is immutable and follows changes of the account tree below the account;
// accounts that the filter names are checked when it is made.
type Selection struct {
	root   string   // the filter's account
	named  []string // accounts that the filter names; nil: root and all below
	types  event.TypeSet
	names  event.NameSet
	agents map[string]struct{} // nil: all, also messages about no agent
	queues map[string]struct{} // nil: all
	calls  map[string]struct{} // nil: all
}

// NewSelection returns the selection of an account's filter, nil when none of its
// accounts is accessible.
func NewSelection(accountID string, f Filter, tree *Tree) *Selection {
	types, _, ok := event.SetOf(f.EventTypes)
	if _, known := tree.Account(accountID); !ok || !known {
		return nil
	}
	s := &Selection{root: accountID, types: types, names: event.NamesOf(f.Names), agents: idSet(f.AgentIDs), queues: idSet(f.QueueIDs), calls: idSet(f.CallIDs)}
	for _, id := range f.AccountIDs {
		if tree.Contains(accountID, id) {
			s.named = append(s.named, id)
		}
	}
	if len(f.AccountIDs) > 0 && s.named == nil {
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

// Accounts returns the accounts whose messages are selected; below: and all accounts
// below them.
func (s *Selection) Accounts() (ids []string, below bool) {
	if s.named == nil {
		return []string{s.root}, true
	}
	return s.named, false
}

// Admits reports whether a message of one of the selection's accounts is selected. A
// message without facts has the name NameOther and no ids.
func (s *Selection) Admits(class event.TypeSet, name event.NameSet, agent, queue, call string) bool {
	return s.types&class != 0 && s.names&name != 0 && has(s.agents, agent) && has(s.queues, queue) && has(s.calls, call)
}

// Equal reports whether s selects the same messages as other.
func (s *Selection) Equal(other *Selection) bool {
	return s.root == other.root && slices.Equal(s.named, other.named) && s.types == other.types && s.names == other.names &&
		equalSets(s.agents, other.agents) && equalSets(s.queues, other.queues) && equalSets(s.calls, other.calls)
}

func equalSets(a, b map[string]struct{}) bool { return (a == nil) == (b == nil) && maps.Equal(a, b) }

func has(set map[string]struct{}, id string) bool {
	if set == nil {
		return true
	}
	_, ok := set[id]
	return ok
}
