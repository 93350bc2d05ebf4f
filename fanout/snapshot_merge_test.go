package fanout

import (
	"testing"

	"trunkline/event"
	"trunkline/event/state"
)

// An entry that is in several partitions is that of the newest event, in whatever order they
// are merged.
func TestTheNewestEventDecidesAmongPartitions(t *testing.T) {
	entry := func(at event.ID, s event.State) *state.Entry {
		return &state.Entry{AccountID: "acme", Kind: state.Call, ID: "c", EventID: at, Facts: event.Facts{State: s}}
	}
	for name, c := range map[string]struct {
		entries []*state.Entry
		want    event.State // "": it has ended
	}{
		"it has ended elsewhere": {[]*state.Entry{entry(1, event.Talking), entry(2, event.Ended)}, ""},
		"it ended before": {[]*state.Entry{entry(1, event.Ended), entry(2, event.Talking)},
			event.Talking},
		"the older of two that live, first": {[]*state.Entry{entry(1, event.Waiting), entry(2, event.Talking)},
			event.Talking},
		"the older of two that live, second": {[]*state.Entry{entry(2, event.Talking), entry(1, event.Waiting)},
			event.Talking},
		"what ended before comes second": {[]*state.Entry{entry(2, event.Talking), entry(1, event.Ended)},
			event.Talking},
		"it ended before, and then elsewhere": {[]*state.Entry{entry(1, event.Ended), entry(2, event.Talking),
			entry(3, event.Ended)}, ""},
		"what has ended elsewhere comes first": {[]*state.Entry{entry(2, event.Ended), entry(1, event.Talking)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			all := newMergedEntries()
			all.ended = map[state.Key]*state.Entry{}
			reused := &state.Entry{} // as a view does it with ended calls

			for _, e := range c.entries {
				if !e.Live() {
					*reused = *e
					e = reused
				}
				all.add(e)
			}

			*reused = state.Entry{}
			all.settle()
			if len(all.live)+len(all.ended) != 1 || c.want == "" && all.ended[entry(0, "").Key()].ID != "c" {
				t.Errorf("live %v, ended %v", all.live, all.ended)
			}

			var got event.State
			for _, e := range all.live {
				got = e.State
			}

			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
