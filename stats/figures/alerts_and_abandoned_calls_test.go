package figures

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
	"trunkline/internal/report"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// The error of an alert that no database takes says so.
func TestTheErrorOfAnAlertThatCannotBeStored(t *testing.T) {
	record := kafka.Record{Key: []byte("de\x00mo|alert|one"), Value: []byte(`{"started_ms": 1}`)}
	_, _, err := decodeAlert(&record, event.FirstID(day0, 0))
	if err == nil || !strings.Contains(err.Error(), "cannot be stored") || strings.Contains(err.Error(), "%!") {
		t.Error(err)
	}
}

// What the fold says of alerts and of callers who hung up is listed, whatever records come again.
func TestAlertsAndAbandonedCallsAreStored(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		s := openStore(t, at)

		var events []state.Event
		var last event.ID
		add := func(seconds int, facts event.Facts) {
			when := day0.Add(time.Duration(seconds) * time.Second)
			last = event.NextID(last, when.UnixMilli(), 0)
			facts.TimestampMS = when.UnixMilli()
			events = append(events, state.Event{ID: last, Account: "demo", Timestamp: when.Unix(), Facts: facts})
		}

		call := func(name event.Name, queue, call string) event.Facts {
			return event.Facts{Name: name, QueueID: queue, CallID: call, Caller: "+49301" + call}
		}
		add(0, call(event.NameQueueCallEntered, "sales", "1"))
		add(3, call(event.NameQueueCallAbandoned, "sales", "1"))
		add(10, call(event.NameQueueCallEntered, "support", "2"))
		add(70, call(event.NameQueueCallAbandoned, "support", "2"))
		add(80, call(event.NameQueueCallEntered, "support", "3"))
		add(90, call(event.NameQueueCallAbandoned, "support", "3")) // Asterisk: and goes on
		gone := call(event.NameQueueCallEnded, "support", "3")
		gone.State = event.Talking
		add(91, gone)
		add(100, call(event.NameQueueCallEntered, "sales", "4"))
		add(400, call(event.NameQueueCallAbandoned, "sales", "4"))
		add(410, call(event.NameQueueCallEntered, "sales", "5"))
		add(800, event.Facts{Name: event.NameOther})

		all := records(0, 1, events)
		s.storeRecords(t, 0, all)
		s.storeRecords(t, 0, all[:len(all)/2])

		span := AbandonedFilter{
			Filter: report.Filter{Account: "demo", Start: day0.Unix(), End: day0.Unix() + 3600, PageSize: 2}}
		page, err := s.ListAbandoned(t.Context(), span)
		if err != nil {
			t.Fatal(err)
		}

		span.After, _ = report.ParseCursor(page.NextStartKey)
		second, err := s.ListAbandoned(t.Context(), span)
		if err != nil {
			t.Fatal(err)
		}

		var got []string
		for _, a := range append(page.Data, second.Data...) {
			got = append(got, fmt.Sprintf("%s %s %s %d %v", a.CallID, a.QueueID, a.Caller, a.WaitMS, a.Short))
		}

		if want := "4 sales +493014 300000 false, 2 support +493012 60000 false, 1 sales +493011 3000 true"; strings.Join(
			got, ", ") != want {
			t.Errorf("abandoned %s", got)
		}

		span.Visible, span.After = &report.Visible{Queues: []string{"support"}}, report.Cursor{}
		page, err = s.ListAbandoned(t.Context(), span)
		if err != nil || len(page.Data) != 1 || page.Data[0].CallID != "2" {
			t.Errorf("a supervisor sees %+v, %v", page, err)
		}

		for state, want := range map[string]string{
			AlertsActive: "Longest wait/sales/false, Nobody is available and callers wait/sales/false",
			AlertsEnded:  "Longest wait/sales/true, Nobody is available and callers wait/sales/true, Nobody is available and callers wait/support/true",
		} {
			alerts, err := s.ListAlerts(t.Context(),
				AlertFilter{State: state,
					Filter: report.Filter{Account: "demo", Start: day0.Unix(), End: day0.Unix() + 3600, PageSize: 50}})
			if err != nil {
				t.Fatal(err)
			}

			var got []string
			for _, a := range alerts.Data {
				got = append(got, fmt.Sprintf("%s/%s/%v", a.Name, a.QueueID, a.EndedAt != ""))
			}

			if strings.Join(got, ", ") != want {
				t.Errorf("%s: %q", state, got)
			}
		}

		if n, err := s.EraseCaller(t.Context(), "demo", "+493014"); err != nil || n != 1 {
			t.Errorf("erased %d calls of a caller, %v", n, err)
		}
		if n, err := s.PurgeAccount(t.Context(), "demo"); err != nil || n == 0 {
			t.Errorf("purged %d, %v", n, err)
		}

		if page, err := s.ListAbandoned(t.Context(),
			AbandonedFilter{Filter: report.Filter{Account: "demo", End: report.EndOfTime}}); err != nil ||
			len(page.Data) != 0 {
			t.Errorf("left after the purge: %+v, %v", page, err)
		}
	})
}
