package figures

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
	"trunkline/internal/report"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
	"trunkline/stats"
)

var day0 = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// onBoth runs test on SQLite and on PostgreSQL.
func onBoth(t *testing.T, test func(t *testing.T, s *Store)) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) { test(t, openStore(t, at)) })
}

func openStore(t testing.TB, at sqldb.Config) *Store {
	t.Helper()
	db := testdb.Open(t, at)
	s, err := New(context.Background(), 0, db, prometheus.NewRegistry(), quiet())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func testRules() stats.Rules {
	return stats.Rules{Interval: 15 * time.Minute, Late: 48 * time.Hour,
		Thresholds: func(string, string, int64) stats.Thresholds { return stats.DefaultThresholds() },
		Alerts:     stats.NewQueueConfigs(nil, nil)}
}

// workday makes events of a partition: agents take calls of queues over a time,
// every third caller hangs up, and agents go on breaks.
func workday(account string, partition, calls int, over time.Duration) []state.Event {
	var events []state.Event
	var last event.ID
	add := func(at time.Time, facts event.Facts) {
		last = event.NextID(last, at.UnixMilli(), partition)
		facts.TimestampMS = at.UnixMilli()
		events = append(events, state.Event{ID: last, Account: account, Timestamp: at.Unix(), Facts: facts})
	}

	const agents = 5
	for i := range agents {
		add(day0, event.Facts{Name: event.NameAgentLogin, AgentID: fmt.Sprint("agent-", i), State: event.Available})
	}

	for i := range calls {
		at := day0.Add(over * time.Duration(i) / time.Duration(calls))
		agent, queue, call := fmt.Sprint("agent-", i%agents), fmt.Sprint("queue-", i%3), fmt.Sprint("call-", partition,
			"-", i)
		add(at, event.Facts{Name: event.NameQueueCallEntered, QueueID: queue, CallID: call})

		switch i % 3 {
		case 0:
			add(at.Add(7*time.Second), event.Facts{Name: event.NameQueueCallAbandoned, QueueID: queue, CallID: call})
		case 1:
			add(at.Add(time.Second),
				event.Facts{Name: event.NameAgentBreakStart, AgentID: agent, State: event.Break, Reason: "lunch"})
			add(at.Add(3*time.Second),
				event.Facts{Name: event.NameAgentBreakEnd, AgentID: agent, State: event.Available})
			fallthrough
		default:
			add(at.Add(4*time.Second),
				event.Facts{Name: event.NameQueueCallAnswered, QueueID: queue, CallID: call, AgentID: agent,
					State: event.Talking})
			add(at.Add(9*time.Second),
				event.Facts{Name: event.NameQueueCallEnded, QueueID: queue, CallID: call, AgentID: agent})
			add(at.Add(9*time.Second), event.Facts{Name: event.NameAgentState, AgentID: agent, State: event.Available})
		}
	}

	return events
}

// records are those of cc.stats that a fold of the events writes, one flush after
// every so many events.
func records(partition, every int, events []state.Event) (all []kafka.Record) {
	f := stats.NewFold(testRules())
	for i := range events {
		f.Apply(&events[i])
		if i%every != 0 && i < len(events)-1 {
			continue
		}

		f.Flush(func(r stats.Record) {
			all = append(all,
				kafka.Record{Topic: event.TopicStats, Partition: partition, Offset: int64(len(all)), Key: []byte(r.Key),
					Value:   r.Value,
					Headers: []kafka.Header{{Key: state.HeaderEventID, Value: r.EventID.Append(nil)}}})
		})
	}

	return all
}

// lastRows returns the last value of each row among records.
func lastRows(all []kafka.Record) map[string]string {
	rows := map[string]string{}
	for i := range all {
		if _, ok := kindOf(string(all[i].Key)); ok && all[i].Value != nil {
			rows[string(all[i].Key)] = string(all[i].Value)
		}
	}
	return rows
}

// storeRecords applies records in one batch.
func (s *Store) storeRecords(t testing.TB, partition int, all []kafka.Record) {
	t.Helper()
	b := batch{tables: s, partition: partition}
	for i := range all {
		b.Add(&all[i], 0)
	}

	if n := testutil.ToFloat64(s.metrics.invalid); n > 0 {
		t.Fatalf("%v records are invalid", n)
	}
	if err := b.Store(t.Context(), stay); err != nil {
		t.Fatal(err)
	}
}

// stay moves no position.
func stay(context.Context, *sqldb.BulkTx) error { return nil }

// wholeDay is the filter of everything that an account has.
func wholeDay(kind Kind, account string) Filter {
	return Filter{Kind: kind, Filter: report.Filter{Account: account, Start: day0.Add(-24 * time.Hour).Unix(),
		End: day0.Add(48 * time.Hour).Unix()}}
}

// listRows returns the rows of a filter as JSON, page by page.
func (s *Store) listRows(t testing.TB, f Filter) (rows []string) {
	t.Helper()
	for {
		page, err := s.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}

		for _, r := range page.Data {
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			rows = append(rows, string(text))
		}

		if page.NextStartKey == "" {
			return rows
		}

		f.After, _ = report.ParseCursor(page.NextStartKey)
	}
}
