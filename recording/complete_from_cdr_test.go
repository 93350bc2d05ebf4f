package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"trunkline/event"
)

// fakeCalls are the records of calls, by call id.
type fakeCalls map[string]event.CDR

func (c fakeCalls) FindCall(_ context.Context, _, callID, _ string) (event.CDR, bool, error) {
	record, ok := c[callID]
	return record, ok, nil
}

// advance moves the recordings' clock: everything that they wait for comes earlier.
func (h *env) advance(t *testing.T, by time.Duration) {
	t.Helper()
	checkError(t)(h.rows.db.ExecContext(t.Context(), `UPDATE recordings SET announce_after = announce_after - $1,
		complete_after = complete_after - $1, created_at = created_at - $1`, by.Milliseconds()))
}

func (h *env) storeOfCall(t *testing.T, id, call string) {
	t.Helper()
	must(h.Store(t.Context(),
		Upload{AccountID: "acme", RecordingID: id, Call: Call{CallID: call}, Body: bytes.NewReader(testAudio(10))}))(t)
}

// recording.stored waits some seconds for the record of the call, and no longer.
func TestTheAnnouncementHasTheCall(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, h *env) {
		calls := fakeCalls{"known": {CallID: "known", AgentID: "1003", QueueID: "sales", InteractionID: "i",
			Timestamp: 1_795_000_000}}
		h.calls = calls
		h.storeOfCall(t, "r-known", "known")
		h.storeOfCall(t, "r-late", "late")
		h.storeOfCall(t, "r-never", "never")

		announced := func() (events []storedEvent) {
			t.Helper()
			check(t, h.completeRecordings(t.Context()))
			check(t, h.announce(t.Context()))
			h.events.mu.Lock()
			defer h.events.mu.Unlock()

			for _, text := range h.events.sent {
				var e storedEvent
				check(t, json.Unmarshal([]byte(text), &e))
				events = append(events, e)
			}

			h.events.sent = nil
			return events
		}

		first := announced()
		if len(first) != 1 || first[0].RecordingID != "r-known" || first[0].AgentID != "1003" ||
			first[0].QueueID != "sales" || first[0].StartedAt != 1_795_000_000 {
			t.Fatalf("at once: %+v", first)
		}

		calls["late"] = event.CDR{CallID: "late", AgentID: "1004", Timestamp: 1_795_000_000}
		h.advance(t, 2*time.Second)
		late := announced()
		if len(late) != 1 || late[0].RecordingID != "r-late" || late[0].AgentID != "1004" {
			t.Fatalf("when its record came: %+v", late)
		}

		h.advance(t, announceWait)
		never := announced()
		if len(never) != 1 || never[0].RecordingID != "r-never" || never[0].CallID != "never" ||
			never[0].AgentID != "" {
			t.Fatalf("after the wait: %+v", never)
		}

		// The record of the third comes after an hour: the recording knows it, without another event.
		calls["never"] = event.CDR{CallID: "never", QueueID: "support", Timestamp: 1_795_000_000}
		h.advance(t, time.Hour)
		if more := announced(); len(more) != 0 {
			t.Errorf("announced again: %+v", more)
		}
		if m := must(h.Metadata(t.Context(), "acme", "r-never"))(t); m.QueueID != "support" {
			t.Errorf("%+v", m.Call)
		}
	})
}

// The look for a record ends with the recording's first week, and becomes rarer with its age.
func TestTheLookForACallsRecordEnds(t *testing.T) {
	now := time.UnixMilli(1_795_000_000_000)
	for age, want := range map[time.Duration]time.Duration{
		0: time.Second, 5 * time.Second: time.Second, 100 * time.Second: 10 * time.Second, 24 * time.Hour: time.Minute,
		8 * 24 * time.Hour: 0,
	} {
		r := &row{Metadata: Metadata{Call: Call{CallID: "c"}}, createdAt: now.Add(-age).UnixMilli()}
		next := r.nextCompletion(now)
		if got := next != nil; got != (want != 0) || got && time.UnixMilli(*next).Sub(now) != want {
			t.Errorf("at %v: %v, want %v", age, next, want)
		}
	}
}
