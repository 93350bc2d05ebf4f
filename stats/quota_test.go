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
			f.Apply(&state.Event{ID: event.ID(at.UnixNano()), Account: account, Timestamp: at.Unix(), Facts: event.Facts{
				Name: event.NameQueueCallEntered, QueueID: fmt.Sprint("queue-", i), CallID: fmt.Sprint(account, "-call-", i)}})
			f.Apply(&state.Event{ID: event.ID(at.UnixNano() + 1), Account: account, Timestamp: at.Unix(), Facts: event.Facts{
				Name: event.NameQueueCallAbandoned, QueueID: fmt.Sprint("queue-", i), CallID: fmt.Sprint(account, "-call-", i)}})
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
		for k := range f.entries {
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
	for k := range first.entries {
		if _, same := again.entries[k]; !same {
			t.Errorf("folded again: no %v", k)
		}
	}
	if first.Ignored() == 0 {
		t.Error("events without a row are not counted")
	}
}
