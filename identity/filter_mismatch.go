package identity

import (
	"slices"

	"trunkline/event"
)

// Message has the fields of a message that filters match.
type Message struct {
	AccountID   string     `json:"account_id"`
	Type        event.Type `json:"type"`
	Format      string     `json:"format"` // original_format of its metadata
	Name        event.Name `json:"name"`
	AgentID     string     `json:"agent_id,omitempty"`
	QueueID     string     `json:"queue_id,omitempty"`
	CallID      string     `json:"call_id,omitempty"`
	OtherQueues string     `json:"member_of,omitempty"` // the agent's other queues, as in event.HeaderAgentQueues
}

// FilterMismatch is the field of a filter that excludes a message.
type FilterMismatch struct {
	Field  string   `json:"field"`            // a field of Filter, FieldAccount or FieldRole
	Admits []string `json:"admits,omitempty"` // the first entries of the field, at most maxShownEntries
	Count  int      `json:"count,omitempty"`  // number of all entries of the field
}

// FieldRole is the Field of a mismatch for a message that the role does not see.
const FieldRole = "role"

// FieldAccount is the Field of a mismatch for a message of an account that is neither
// the filter's own nor below it.
const FieldAccount = "account"

// maxShownEntries bounds the entries of a filter that a mismatch shows.
const maxShownEntries = 10

// Mismatch returns the first field of a filter of the account root that excludes a
// message, nil if none does. It applies the rules of Selection, in the order account,
// account_ids, event_types, names, agent_ids, queue_ids, call_ids.
func (f *Filter) Mismatch(root string, m *Message, tree *Tree) *FilterMismatch {
	if !tree.Contains(root, m.AccountID) {
		return &FilterMismatch{Field: FieldAccount}
	}

	types, _, _ := event.TypeSetOf(f.EventTypes)
	allows := func(ids []string, id string) bool { return len(ids) == 0 || slices.Contains(ids, id) }
	for _, field := range [...]struct {
		name    string
		entries []string
		admits  bool
	}{
		{"account_ids", f.AccountIDs, allows(f.AccountIDs, m.AccountID)},
		{"event_types", f.EventTypes, types&event.TypeClassOf(m.Type, m.Format, event.Name(m.Name)) != 0},
		{"names", f.Names, event.NamesOf(f.Names)&event.NameBit([]byte(m.Name)) != 0},
		{"agent_ids", f.AgentIDs, allows(f.AgentIDs, m.AgentID)},
		{"queue_ids", f.QueueIDs, allows(f.QueueIDs, m.QueueID)},
		{"call_ids", f.CallIDs, allows(f.CallIDs, m.CallID)},
	} {
		if !field.admits {
			return &FilterMismatch{field.name, field.entries[:min(len(field.entries), maxShownEntries)],
				len(field.entries)}
		}
	}

	return nil
}
