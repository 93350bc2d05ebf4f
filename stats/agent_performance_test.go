package stats

import (
	"context"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
)

// messages are rows by identity: the messages that the normalizer makes of the records
// of a log, where the first record of each identity wins.
type messages map[string]string

func (m messages) take(t *testing.T, f *Fold) {
	t.Helper()
	for _, p := range f.TakePerformances() {
		m.add(t, p.Identity.String(), string(p.Row))
	}
}

// add adds a record. All records with one identity must have the same row.
func (m messages) add(t *testing.T, identity, row string) {
	t.Helper()
	if before, ok := m[identity]; ok && before != row {
		t.Errorf("%s:\nfirst %s\n then %s", identity, before, row)
	}
	m[identity] = row
}

func TestEachAgentHasOneMessageAMinuteAfterItsInterval(t *testing.T) {
	s := new(script).
		at("09:00:00", login("a1")).at("09:01:00", login("a2")).
		at("09:10:00", logout("a2")).
		at("09:15:59", tick())
	f := s.foldEvents()
	if early := f.TakePerformances(); len(early) > 0 {
		t.Errorf("messages before the minute is over: %v", early)
	}

	s.at("09:16:00", tick())
	f.Apply(&s.events[len(s.events)-1])
	var rows []string

	for _, p := range f.TakePerformances() {
		rows = append(rows, string(p.Row))
	}

	want := `{"account_id":"acme","agent_id":"a1","interval_start":1795165200,"interval_seconds":900,"logged_in_ms":900000,"available_ms":900000,` +
		`"talking_ms":0,"wrap_up_ms":0,"break_ms":0,"offered":0,"answered":0,"no_answer":0}`
	expect(t, "rows", len(rows), 2)

	if rows[0] != want && rows[1] != want {
		t.Errorf("messages %s", rows)
	}

	// A late event changes the row, and makes no second message.
	s.late("09:05:00", "09:17:00", onBreak("a1", "late")).at("09:18:00", tick())
	for i := range s.events[len(s.events)-2:] {
		f.Apply(&s.events[len(s.events)-2+i])
	}

	if again := f.TakePerformances(); len(again) > 0 {
		t.Errorf("again: %v", again)
	}

	expect(t, "row", f.agent("a1", "09:00:00").BreakMS, 10*minute)
}

// The row of the first message of a quiet partition is the one that the fold makes
// when the message comes back.
func TestAQuietPartitionsFirstMessageIsThatOfTheFold(t *testing.T) {
	for seed := range uint64(4) {
		events := randomDay(seed, 300)
		f, compared := NewFold(testRules()), 0
		for i := range events {
			if i > 0 && events[i].ID > events[i-1].ID+event.ID(time.Minute) {
				previewed, by := messages{}, events[i].ID
				all := f.performances
				for e := all.nextOverdue(by, nil); e != nil; e = all.nextOverdue(by, e.commonHeader()) {
					p := all.preview(e)
					previewed.add(t, p.Identity.String(), string(p.Row))
				}

				f.Advance(by)
				for _, p := range f.TakePerformances() {
					row, ok := previewed[p.Identity.String()]
					if !ok { // of a later interval of the agent
						continue
					}

					compared++
					if row != string(p.Row) {
						t.Fatalf("seed %d, event %d:\n got %s\nwant %s", seed, i, row, p.Row)
					}
				}
			}

			f.Apply(&events[i])
			f.TakePerformances()
		}

		if compared < 50 {
			t.Errorf("seed %d: only %d messages", seed, compared)
		}
	}
}

// Wherever one processor ends and another one continues from the flushed state, the
// messages are the same; repeated ones have the same identity and row.
func TestTakeoversMakeTheSameMessages(t *testing.T) {
	for seed := range uint64(2) {
		events := randomDay(seed, 400)
		whole, want := NewFold(testRules()), messages{}
		for i := range events {
			whole.Apply(&events[i])
			want.take(t, whole)
		}

		if len(want) < 200 {
			t.Fatalf("only %d messages", len(want))
		}

		r := rand.New(rand.NewPCG(seed, 1))
		got, stored, f, flushed := messages{}, topic{}, NewFold(testRules()), -1
		for i := 0; i < len(events); i++ {
			f.Apply(&events[i])
			switch r.IntN(40) {
			case 0, 1: // killed between the messages and the position
				got.take(t, f)
				if flushed < 0 {
					f = NewFold(testRules())
				} else {
					f = stored.loadFold(events[flushed].ID)
				}

				i = flushed
			case 2, 3, 4:
				got.take(t, f)
				stored.applyFlush(f)
				flushed = i
			}
		}

		got.take(t, f)
		if !maps.Equal(got, want) {
			t.Errorf("seed %d: %d messages, want %d", seed, len(got), len(want))
		}
	}
}

// recent moves events so that the last ones are of this hour.
func recent(events []state.Event) []state.Event {
	by := time.Since(events[len(events)-1].ID.Time()).Truncate(time.Hour)
	var last event.ID
	for i := range events {
		e := &events[i]
		last = event.NextID(last, e.ID.Time().Add(by).UnixMilli(), 0)
		e.ID, e.Timestamp, e.Facts.TimestampMS = last, e.Timestamp+int64(
			by/time.Second), e.Facts.TimestampMS+by.Milliseconds()
	}
	return events
}

// readMessages returns the messages that are in partition 0 of cc.raw.
func readMessages(t *testing.T, c *kafka.Cluster) messages {
	t.Helper()
	all := messages{}
	_, next, err := c.Offsets(t.Context(), event.TopicRaw, 0)
	if err != nil {
		t.Fatal(err)
	}

	reader := c.OpenReader(kafka.ReaderConfig{Topic: event.TopicRaw, Partition: 0})
	defer reader.Close()

	for reader.Next() < next {
		records, err := reader.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		for i := range records {
			r := &records[i]
			if string(r.Header(event.HeaderFormat)) == event.FormatOwn {
				continue // of alerts
			}
			if f := string(r.Header(event.HeaderFormat)); f != event.FormatPerformance || string(r.Key) != account {
				t.Errorf("a record of format %q, account %q", f, r.Key)
			}

			all.add(t, string(r.Header(event.HeaderIdentity)), string(r.Value))
		}
	}

	return all
}

func TestKilledProcessorsWriteEachMessage(t *testing.T) {
	t.Parallel()
	c, events := kafkatest.OpenEmbedded(t, 1), recent(randomDay(5, 600))
	events = append(events, lastEvent(events))
	want, f := messages{}, NewFold(testRules())
	oldest := time.Now().Add(-messageAge + time.Hour) // later ones are surely made

	for i := range events {
		f.Apply(&events[i])
		for _, p := range f.TakePerformances() {
			if end := time.Unix(int64(p.Identity.Number+1)*900, 0); end.After(oldest) {
				want[p.Identity.String()] = string(p.Row)
			}
		}
	}

	for from, n := 0, len(events)/6; from < len(events); from += n {
		part := events[from:min(from+n, len(events))]
		produceEvents(t, c, part)
		stop := startWith(t, c, Deps{LogReader: busyLog{kafka.NewLog(c)}})

		if from%(2*n) == 0 {
			await(t, c, part)
		} else {
			awaitAny(t, c, part)
		}

		stop()
	}

	startWith(t, c, Deps{LogReader: busyLog{kafka.NewLog(c)}})
	await(t, c, events)
	got := readMessages(t, c)

	for identity, row := range want {
		if got[identity] != row {
			t.Errorf("%s:\n got %s\nwant %s", identity, got[identity], row)
		}
	}

	t.Logf("%d messages, %d of them looked at", len(got), len(want))
}

// busyLog is a Log whose partitions never end. The parts of the test are hours old: at
// the end of one, the clock would make messages that the next part's events change.
type busyLog struct{ kafka.Log }

func (l busyLog) Read(cfg kafka.ReaderConfig) kafka.Source {
	return busyReader{l.Log.Read(cfg)}
}

type busyReader struct{ kafka.Source }

func (busyReader) Idle() time.Time { return time.Time{} }

// awaitAny waits until one of the events is folded and written.
func awaitAny(t testing.TB, c *kafka.Cluster, events []state.Event) {
	t.Helper()
	await(t, c, events[:1])
}

// noAccount has no account.
type noAccount struct{}

func (noAccount) Exists(context.Context, string) (bool, error) { return false, nil }

func TestAgentsOfADeletedAccountHaveNoMessages(t *testing.T) {
	c := kafkatest.OpenEmbedded(t, 1)
	w := newWorker(t, c)
	w.deps.Accounts = noAccount{}
	now := time.Now()
	s := &script{}
	s.events = []state.Event{
		{ID: event.FirstID(now, 0), Account: account, Timestamp: now.Add(-time.Hour).Unix(), Facts: login("a1")},
		{ID: event.FirstID(now.Add(time.Second), 0), Account: account, Timestamp: now.Unix(), Facts: tick()},
	}
	w.foldAll(t, s.events)

	if got := readMessages(t, c); len(got) > 0 {
		t.Errorf("messages %v", got)
	}

	w.deps.Accounts = everyAccount{}
	again := &partitionWorker{partitionFold: w.newPartitionFold(0), commit: w.commit, oldest: w.oldest, next: w.next}
	again.position = w.position
	again.foldAll(t, s.events)

	for identity, row := range readMessages(t, c) {
		if !strings.HasPrefix(identity, "stats-15m0s-") || !strings.Contains(row, `"agent_id":"a1"`) {
			t.Errorf("%s: %s", identity, row)
		}
	}

	if len(readMessages(t, c)) == 0 {
		t.Error("no message of an account that exists")
	}
}

// A partition without events makes the first message itself; the next ones follow
// when it comes back.
func TestAQuietPartitionMakesItsMessages(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the end of an interval")
	}

	t.Parallel()
	c := kafkatest.OpenEmbedded(t, 1)
	now := time.Now()
	edge := now.Truncate(15 * time.Minute).Add(-15 * time.Minute)

	logins := make([]state.Event, 3)
	for i := range logins {
		facts := login([]string{"a1", "a2", "a3"}[i])
		logins[i] = state.Event{ID: event.NextID(0, edge.Add(-time.Duration(10-i)*time.Minute).UnixMilli(), 0),
			Account:   account,
			Timestamp: edge.Add(-time.Duration(10-i) * time.Minute).Unix(), Facts: facts}
	}

	produceEvents(t, c, logins)
	stop := start(t, c)
	deadline := time.Now().Add(3 * time.Minute)

	for len(readMessages(t, c)) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("no message")
		}
		time.Sleep(20 * time.Millisecond)
	}

	first := readMessages(t, c)
	stop()
	back := state.Event{ID: event.NextID(logins[2].ID, now.UnixMilli(), 0), Account: account, Timestamp: now.Unix(),
		Facts: tick()}
	produceEvents(t, c, []state.Event{back})
	start(t, c)
	await(t, c, []state.Event{back})
	all := readMessages(t, c)
	if len(all) < 3 {
		t.Errorf("%d messages of three agents", len(all))
	}

	for identity, row := range first {
		if all[identity] != row {
			t.Errorf("%s: %s became %s", identity, row, all[identity])
		}
	}
}
