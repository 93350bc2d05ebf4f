package state

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
)

func TestRecordsAreReadAsTheyAreWritten(t *testing.T) {
	entry := &Entry{AccountID: "a", Kind: Call, ID: "c|1", EventID: 1_700_000_000_000_000_000, Since: 1_700_000_000,
		Facts:  event.Facts{Name: event.NameQueueCallAnswered, State: event.Talking, WaitMS: event.MillisOf(0)},
		Source: "feed:pbx", Queues: []string{"p", "q \"1\""}, EnteredMS: 1, AnsweredMS: 2}
	value, err := json.Marshal(entry)
	if err != nil {
		t.Fatal(err)
	}

	if got := entry.Append(nil); !sameJSON(t, got, value) {
		t.Errorf("Append = %s, its tags say %s", got, value)
	}

	got, err := ParseRecord(entry.Key().String(), value, nil)
	if err != nil || !reflect.DeepEqual(got.Entry, entry) {
		t.Errorf("%s is read as %+v, %v", value, got.Entry, err)
	}

	key := entry.Key()
	if got, err := ParseRecord(key.String(), nil, []byte(entry.EventID.String())); err != nil || got.Deleted == nil ||
		*got.Deleted != key || got.EventID != entry.EventID {
		t.Errorf("a tombstone is read as %+v, %v", got, err)
	}

	position := &Position{Kind: PositionKind, EventID: entry.EventID, Offset: 7, LeaderEpoch: -1, TopicID: "t",
		SourcePosition: "0:9", EventPosition: "0:7", Since: 3}
	value, err = json.Marshal(position)
	if err != nil {
		t.Fatal(err)
	}

	if got := position.Append(nil); !sameJSON(t, got, value) {
		t.Errorf("Append = %s, its tags say %s", got, value)
	}
	if got, err := ParseRecord(PositionKey, value, nil); err != nil || !reflect.DeepEqual(got.Position, position) {
		t.Errorf("%s is read as %+v, %v", value, got.Position, err)
	}

	for _, key := range []string{"", "a", "a|agent", "a|agent|", "|agent|x", "a|queue|x"} {
		if got, err := ParseRecord(key, nil, nil); err == nil {
			t.Errorf("key %q is read as %+v", key, got)
		}
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatalf("%s: %v", a, err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

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
