package identity

import (
	"context"
	"fmt"
	"unicode/utf8"

	"trunkline/event"
	"trunkline/internal/fault"
)

// Filter restricts the events of a channel token or webhook. An empty list does not
// restrict; an event must match every other list. Ids are those of the source.
type Filter struct {
	AccountIDs []string `json:"account_ids,omitempty"`
	EventTypes []string `json:"event_types,omitempty"`
	QueueIDs   []string `json:"queue_ids,omitempty"`
	AgentIDs   []string `json:"agent_ids,omitempty"`
	CallIDs    []string `json:"call_ids,omitempty"`
	Names      []string `json:"names,omitempty"` // event names, or a class such as "call.*"
}

const (
	maxFilterAccounts = 200
	maxFilterIDs      = 1000 // per list

	// MaxFilterID is the maximum length of an id in a filter, in bytes.
	MaxFilterID = 256
)

// unique returns the filter without repeated entries.
func (f Filter) unique() Filter {
	return Filter{unique(f.AccountIDs), unique(f.EventTypes), unique(f.QueueIDs), unique(f.AgentIDs), unique(f.CallIDs),
		unique(f.Names)}
}

// CheckFilter checks the filter of an account's channel login or webhook and returns it
// without repeated entries. Returns fault.KindInvalid that names every invalid field.
func (d *Directory) CheckFilter(ctx context.Context, accountID string, f Filter) (Filter, error) {
	distinct := f.unique()
	if err := distinct.checkLengths(); err != nil {
		return Filter{}, err
	}
	if !d.Tree().containsAll(accountID, distinct.AccountIDs) {
		d.changes.pollEarly(ctx) // another node may have just created one of the accounts
	}
	return distinct, f.check(accountID, d.Tree())
}

// check returns fault.KindInvalid that names every invalid field of a filter of the account.
func (f Filter) check(accountID string, tree *Tree) error {
	var bad fieldProblems
	for i, id := range f.AccountIDs {
		if !tree.Contains(accountID, id) {
			bad.add(fmt.Sprintf("account_ids[%d]", i), "unknown_account", "unknown account "+quote(id))
		}
	}

	for i, name := range f.EventTypes {
		_, _, known := event.TypeSetOf([]string{name})
		if !known {
			bad.add(fmt.Sprintf("event_types[%d]", i), "unknown_type", "unknown event type "+quote(name))
		}
	}

	for _, list := range []struct {
		field string
		ids   []string
	}{{"queue_ids", f.QueueIDs}, {"agent_ids", f.AgentIDs}, {"call_ids", f.CallIDs}} {
		bad.checkIDs(list.field, list.ids)
	}

	for i, name := range f.Names {
		_, known := event.NamesMatching(name)
		if !known {
			bad.add(fmt.Sprintf("names[%d]", i), "unknown_name", "unknown name "+quote(name))
		}
	}

	return bad.asError("Invalid filter")
}

// checkIDs checks a list of ids of a source.
func (p *fieldProblems) checkIDs(field string, ids []string) {
	for i, id := range ids {
		if id == "" || len(id) > MaxFilterID || !utf8.ValidString(id) {
			p.add(fmt.Sprintf("%s[%d]", field, i), codeInvalid, fmt.Sprintf("an id has 1 to %d bytes", MaxFilterID))
		}
	}
}

// checkLengths returns fault.KindInvalid if a list has too many different entries.
func (f Filter) checkLengths() error {
	if len(f.AccountIDs) > maxFilterAccounts {
		return fault.InvalidField("account_ids", codeTooMany,
			fmt.Sprintf("at most %d accounts can be named", maxFilterAccounts))
	}

	// Not event_types: distinct ones that are known are few, and check refuses the others.
	for _, list := range []struct {
		field string
		ids   []string
	}{{"queue_ids", f.QueueIDs}, {"agent_ids", f.AgentIDs}, {"call_ids", f.CallIDs}, {"names", f.Names}} {
		if len(list.ids) > maxFilterIDs {
			return fault.InvalidField(list.field, codeTooMany,
				fmt.Sprintf("at most %d entries can be named", maxFilterIDs))
		}
	}

	return nil
}

// unique returns the list without repeated entries.
func unique(list []string) []string {
	var kept []string
	seen := make(map[string]struct{}, len(list))
	for _, entry := range list {
		_, repeat := seen[entry]
		if !repeat {
			seen[entry] = struct{}{}
			kept = append(kept, entry)
		}
	}

	return kept
}
