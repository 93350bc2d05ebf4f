package origination

import (
	"slices"
	"testing"

	"trunkline/internal/testservice/testdb"
)

// A platform sends repeated and invalid reports before it has returned the call's id: every later step
// is accepted.
func TestAllThatIsSaidBeforeTheAnswerCounts(t *testing.T) {
	d := newTestNode(t, testdb.SQLite(t)).run()
	d.platform.onOriginate = func(o Order) (Placed, error) {
		id := "p-" + o.ID
		for _, state := range states {
			d.platform.reportStates(id, state, "nonsense", state, Accepted, state)
		}
		return Placed{CallID: id}, nil
	}

	id := d.place("1002")
	d.awaitState(id, Ended)
	call, err := d.Get(t.Context(), d.alice(), id)
	mustSucceed(t, err)

	if !slices.Equal(statesOf(call.History), states[:]) {
		t.Errorf("stored %v", statesOf(call.History))
	}
}
