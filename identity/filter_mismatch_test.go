package identity

import (
	"fmt"
	"testing"

	"trunkline/event"
)

// A mismatch names the deciding field, and there is none exactly if a selection of the
// same filter selects the message.
func TestMismatchAgreesWithTheSelection(t *testing.T) {
	tree := NewTree(Account{ID: "root"}, Account{ID: "shop", ParentID: "root"}, Account{ID: "kiosk", ParentID: "shop"},
		Account{ID: "other"})
	message := Message{AccountID: "shop", Type: event.QueueCall, Format: "svc.cc", Name: event.NameQueueCallOffered,
		AgentID: "7", QueueID: "sales", CallID: "c"}
	own := message
	own.Type, own.Format = event.Custom, event.FormatOwn
	older := Message{AccountID: "kiosk", Type: event.AgentLogin, Format: "svc.cc"} // of a version without facts
	var many []string

	for i := range 2 * maxShownEntries {
		many = append(many, fmt.Sprint(i))
	}

	for _, c := range []struct {
		root   string
		filter Filter
		m      Message
		field  string
	}{
		{"root", Filter{}, message, ""},
		{"shop", Filter{}, message, ""},
		{"kiosk", Filter{}, message, "account"},
		{"other", Filter{}, message, "account"},
		{"gone", Filter{}, message, "account"},
		{"root", Filter{AccountIDs: []string{"shop"}}, message, ""},
		{"root", Filter{AccountIDs: []string{"kiosk"}}, message, "account_ids"},
		{"kiosk", Filter{AccountIDs: []string{"shop"}}, message, "account"},
		{"root", Filter{EventTypes: []string{"AGENT_LOGIN"}}, message, "event_types"},
		{"root", Filter{}, own, "event_types"},
		{"root", Filter{EventTypes: []string{"AGENT_CUSTOM_EVENT"}}, own, ""},
		{"root", Filter{Names: []string{"queue.*"}}, message, ""},
		{"root", Filter{Names: []string{"agent.*"}}, message, "names"},
		{"root", Filter{Names: []string{"other"}}, older, ""},
		{"root", Filter{AgentIDs: []string{"7", "8"}, QueueIDs: []string{"sales"}, CallIDs: []string{"c"}}, message,
			""},
		{"root", Filter{AgentIDs: many[8:], QueueIDs: []string{"service"}}, message, "agent_ids"},
		{"root", Filter{QueueIDs: []string{"service"}}, message, "queue_ids"},
		{"root", Filter{CallIDs: []string{"d"}}, message, "call_ids"},
		{"root", Filter{AgentIDs: []string{"7"}}, older, "agent_ids"},
	} {
		mismatch := c.filter.Mismatch(c.root, &c.m, tree)
		field := ""
		if mismatch != nil {
			field = mismatch.Field
			if len(mismatch.Admits) > maxShownEntries || mismatch.Count < len(mismatch.Admits) {
				t.Errorf("%+v shows %d of %d entries", c.filter, len(mismatch.Admits), mismatch.Count)
			}
		}

		if field != c.field {
			t.Errorf("%s, %+v, %+v: mismatch in %q, want %q", c.root, c.filter, c.m, field, c.field)
		}

		selected := false
		if s := NewSelection(c.root, c.filter, tree); s != nil {
			ids, below := s.Accounts()
			for _, id := range ids {
				selected = selected || id == c.m.AccountID || below && tree.Contains(id, c.m.AccountID)
			}

			selected = selected &&
				s.Admits(event.TypeClassOf(c.m.Type, c.m.Format, event.Name(c.m.Name)), event.NameBit([]byte(c.m.Name)),
					c.m.AgentID, c.m.QueueID, c.m.CallID)
		}

		if selected != (mismatch == nil) {
			t.Errorf("%s, %+v, %+v: selected %v, mismatch %+v", c.root, c.filter, c.m, selected, mismatch)
		}
	}
}
