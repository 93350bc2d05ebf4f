package state

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
)

func tombstone(k Key, id event.ID) Record { return Record{Deleted: &k, EventID: id} }

// A reader sees batches, and never an older event than it has seen.
func TestAViewTakesBatchesAndIgnoresWhatIsOlder(t *testing.T) {
	const base = event.ID(1_800_000_000_000_000_000)
	at := time.Unix(0, int64(base))
	entry := func(id string, n event.ID, s event.State) Record {
		e := &Entry{AccountID: "a", Kind: Agent, ID: id, EventID: base + n,
			Facts: event.Facts{Name: event.NameAgentState, State: s}}
		return Record{Entry: e, EventID: e.EventID}
	}

	position := func(n event.ID) Record {
		return Record{Position: &Position{Kind: PositionKind, EventID: base + n, Offset: int64(n)}, EventID: base + n}
	}

	v := NewView()
	shows := func() string {
		var all []string
		v.Each(func(account string) bool { return account == "a" }, at,
			func(e *Entry) { all = append(all, e.ID+" "+string(e.State)) })
		slices.Sort(all)
		s := strings.Join(all, ", ")

		if p := v.Position(); p != nil {
			s += fmt.Sprint(" to ", p.Offset)
		}

		return s
	}

	for i, step := range []struct {
		record Record
		want   string
	}{
		{entry("1", 1, event.Available), ""},
		{entry("2", 2, event.Available), ""},
		{position(2), "1 available, 2 available to 2"},
		{entry("1", 5, event.Talking), "1 available, 2 available to 2"},
		{position(5), "1 talking, 2 available to 5"},
		{entry("1", 3, event.Ringing), "1 talking, 2 available to 5"}, // of a normalizer that was relieved
		{tombstone(Key{"a", Agent, "1"}, base+4), "1 talking, 2 available to 5"},
		{position(4), "1 talking, 2 available to 5"},
		{tombstone(Key{"a", Agent, "2"}, base+6), "1 talking, 2 available to 5"},
		{entry("1", 5, event.Talking), "1 talking, 2 available to 5"}, // written again
		{position(6), "1 talking to 6"},
	} {
		v.Apply(step.record)
		if shows() != step.want {
			t.Errorf("after record %d: %q, want %q", i, shows(), step.want)
		}
	}

	at = at.Add(agentAge)
	if got := shows(); got != "1 talking to 6" || v.Size(Agent) != 1 {
		t.Errorf("before it expires: %q, %d agents", got, v.Size(Agent))
	}

	at = at.Add(time.Second)
	if shows() != " to 6" {
		t.Errorf("expired, and still there: %q", shows())
	}
}
