package stats

import (
	"fmt"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
)

// Whoever posts events with ever new queues gets rows for MaxRows of them in an interval;
// another account and the next interval are not concerned, and folding again gives the same.
func TestRowsOfAnAccountAreBounded(t *testing.T) {
	fold := func() *Fold {
		f := NewFold(Rules{Interval: 15 * time.Minute, Late: 48 * time.Hour, MaxRows: 10,
			Thresholds: func(string, string, int64) Thresholds { return DefaultThresholds() }})
		at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		enter := func(account string, i int) {
			at = at.Add(time.Millisecond)
			f.Apply(&state.Event{ID: event.ID(at.UnixNano()), Account: account, Timestamp: at.Unix(),
				Facts: event.Facts{
					Name: event.NameQueueCallEntered, QueueID: fmt.Sprint("queue-", i),
					CallID: fmt.Sprint(account, "-call-", i)}})
			f.Apply(&state.Event{ID: event.ID(at.UnixNano() + 1), Account: account, Timestamp: at.Unix(),
				Facts: event.Facts{
					Name: event.NameQueueCallAbandoned, QueueID: fmt.Sprint("queue-", i),
					CallID: fmt.Sprint(account, "-call-", i)}})
		}

		for i := range 100 {
			enter("flood", i)
		}

		enter("other", 1)
		at = at.Add(15 * time.Minute)
		enter("flood", 200)

		return f
	}

	count := func(f *Fold) (flood, other int) {
		for k := range f.table.entries {
			if k.kind == kindQueue && k.account.Value() == "flood" {
				flood++
			}
			if k.kind == kindQueue && k.account.Value() == "other" {
				other++
			}
		}

		return flood, other
	}

	first, again := fold(), fold()
	if flood, other := count(first); flood != 11 || other != 1 {
		t.Errorf("%d rows of the flood, %d of the other account", flood, other)
	}

	for k := range first.table.entries {
		if _, same := again.table.entries[k]; !same {
			t.Errorf("folded again: no %v", k)
		}
	}

	if first.Ignored() == 0 {
		t.Error("events without a row are not counted")
	}
}

// Whoever posts events with ever new agents, or calls that never end, gets entries for a bounded
// number of them; those that are known go on, and another account is not concerned.
func TestOpenEntriesOfAnAccountAreBounded(t *testing.T) {
	const rows = 10

	f := NewFold(Rules{Interval: 15 * time.Minute, Late: 48 * time.Hour, MaxRows: rows,
		Thresholds: func(string, string, int64) Thresholds { return DefaultThresholds() }})
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	apply := func(account string, facts event.Facts) {
		at = at.Add(time.Millisecond)
		f.Apply(&state.Event{ID: event.ID(at.UnixNano()), Account: account, Timestamp: at.Unix(), Facts: facts})
	}

	for i := range 3 * rows * openPerRow {
		apply("flood", event.Facts{Name: event.NameAgentLogin, AgentID: fmt.Sprint("agent-", i),
			State: event.Available})
		apply("flood", event.Facts{Name: event.NameQueueCallEntered, QueueID: "queue", CallID: fmt.Sprint("call-", i)})
	}

	apply("other", event.Facts{Name: event.NameAgentLogin, AgentID: "agent", State: event.Available})
	apply("other", event.Facts{Name: event.NameQueueCallEntered, QueueID: "queue", CallID: "call"})
	apply("flood", event.Facts{Name: event.NameAgentBreakStart, AgentID: "agent-0", State: event.Break})

	count := map[string]int{}
	for k := range f.table.entries {
		count[k.account.Value()+" "+kinds[k.kind]]++
	}

	for what, want := range map[string]int{
		"flood open_agent": rows * openPerRow, "flood open_call": rows * openPerRow, "other open_agent": 1,
		"other open_call": 1,
	} {
		if count[what] != want {
			t.Errorf("%s: %d entries, want %d", what, count[what], want)
		}
	}

	row := f.table.entries[newKey(kindQueue, "flood", "queue", f.table.intervals.startOf(at.UnixMilli()))].(*QueueRow)
	if row.Offered != rows*openPerRow {
		t.Errorf("%d calls are counted as offered", row.Offered)
	}

	known := f.table.entries[newKey(kindOpenAgent, "flood", "agent-0", 0)].(*agent)
	if known.State != event.Break {
		t.Errorf("a known agent is %s", known.State)
	}
	if f.Ignored() == 0 {
		t.Error("what was left out is not counted")
	}
}
