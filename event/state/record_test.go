package state

import (
	"encoding/json"
	"reflect"
	"testing"

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
