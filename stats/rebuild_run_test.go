package stats

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
	"trunkline/internal/kafka/kafkatest"
)

// memoryRebuilds keeps the request for partition 0.
type memoryRebuilds struct {
	mu  sync.Mutex
	one Rebuild
}

func askRebuild(from int64) *memoryRebuilds {
	return &memoryRebuilds{one: Rebuild{ID: "r1", From: from, State: RebuildOpen}}
}

func (m *memoryRebuilds) ListOpen(context.Context) ([]Rebuild, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.one.State != RebuildOpen {
		return nil, nil
	}
	return []Rebuild{m.one}, nil
}

func (m *memoryRebuilds) Update(_ context.Context, r Rebuild) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.one = r
	return nil
}

// await waits until the rebuild has ended.
func (m *memoryRebuilds) await(t testing.TB) Rebuild {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		m.mu.Lock()
		one := m.one
		m.mu.Unlock()

		if one.State != RebuildOpen {
			return one
		}
		if time.Now().After(deadline) {
			t.Fatalf("the rebuild does not end: %+v", one)
		}
	}
}

// twoDays makes events of two days with a week between them: the time of the first
// day's rows is over in the second one.
func twoDays(seed uint64, n int) []state.Event {
	const week = 7 * 24 * time.Hour
	events := randomDay(seed, n)
	last := events[len(events)-1].ID

	for _, e := range randomDay(seed+1, n) {
		last = event.NextID(last, e.ID.Time().Add(week).UnixMilli(), 3)
		e.ID, e.Timestamp = last, e.Timestamp+int64(week/time.Second)
		e.Facts.TimestampMS += week.Milliseconds()
		events = append(events, e)
	}

	return append(events, lastEvent(events))
}

// openUncompacted returns a cluster on an embedded broker that never compacts: a
// compaction deletes a row before its tombstone.
func openUncompacted(t testing.TB) *kafka.Cluster {
	t.Helper()
	return kafkatest.Open(t, kafkatest.Config(kafkatest.StartBroker(t, embedded.Config{TrimEvery: 24 * time.Hour})), 1)
}

// readRows returns each row as a database has it that reads cc.stats: of two records
// the one of a later event counts, and tombstones do not.
func readRows(t testing.TB, c *kafka.Cluster) topic {
	t.Helper()
	rows, ids := topic{}, map[string]string{}
	_, err := c.ScanCompacted(t.Context(), event.TopicStats, 0, 0, func() { clear(rows); clear(ids) },
		func(r *kafka.Record) {
			k, err := parseKey(string(r.Key))
			if err != nil || k.kind != kindQueue && k.kind != kindAgent || r.Value == nil {
				return
			}

			if id := string(r.Header(state.HeaderEventID)); id >= ids[string(r.Key)] {
				rows[string(r.Key)], ids[string(r.Key)] = string(r.Value), id
			}
		})
	if err != nil {
		t.Fatal(err)
	}

	return rows
}

// damage writes wrong values over all rows and all entries with which the fold
// continues.
func damage(t testing.TB, c *kafka.Cluster) {
	t.Helper()

	w := newWorker(t, c)
	var records []kafka.Record
	wrong := func(key, value string) {
		value = strings.NewReplacer(`_ms":`, `_ms":1`, `offered":`, `offered":7`).Replace(value)
		records = append(records, w.newRecord(Record{Key: key, Value: []byte(value), EventID: w.position.EventID}))
	}

	live, _ := readFigures(t, c)
	for key, value := range readRows(t, c) {
		wrong(key, value)
		if _, ok := live[key]; !ok {
			records = append(records, w.newRecord(Record{Key: key, EventID: w.position.EventID}))
		}
	}

	for key, value := range live {
		if strings.Contains(key, "|open_") {
			wrong(key, value)
		}
	}

	for part := range slices.Chunk(records, 500) {
		if _, err := w.writeWithRetry(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARebuildGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	c, events := openUncompacted(t), twoDays(1, 400)
	produceEvents(t, c, events)
	stop := start(t, c)
	live := await(t, c, events)
	stop()
	rows := readRows(t, c)
	if len(rows) <= len(live) {
		t.Fatalf("%d rows and %d live records: the time of no row is over", len(rows), len(live))
	}

	damage(t, c)
	if maps.Equal(readRows(t, c), rows) {
		t.Fatal("no row is damaged")
	}

	requests := askRebuild(0)
	stop = startWith(t, c, Deps{LogReader: kafka.NewLog(c), Rebuilds: requests})
	if r := requests.await(t); r.State != RebuildDone || r.Folded != int64(len(events)) || r.Total != r.Folded {
		t.Fatalf("%+v", r)
	}

	compare(t, readRows(t, c), rows)
	values, _ := readFigures(t, c)
	compare(t, values, live)

	more := randomDay(9, 50)
	for i := range more { // the processor continues from there
		more[i].ID = events[len(events)-1].ID + event.ID((i+1)*event.MaxPartitions)
	}

	produceEvents(t, c, more)
	compare(t, await(t, c, more), folded(append(slices.Clone(events), more...)))
	stop()
}

// slowLog returns a few events at a time, as long as it may.
type slowLog struct {
	kafka.Log
	reads chan struct{} // a value for each read
}

func (l slowLog) Read(cfg kafka.ReaderConfig) kafka.Source {
	return &slowReader{Source: l.Log.Read(cfg), reads: l.reads}
}

type slowReader struct {
	kafka.Source
	reads chan struct{}
	rest  []kafka.Record // read, not given yet
}

func (r *slowReader) Read(ctx context.Context) (some []kafka.Record, err error) {
	select {
	case <-r.reads:
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	if len(r.rest) == 0 {
		r.rest, err = r.Source.Read(ctx)
		if err != nil {
			return nil, err
		}
	}

	n := min(50, len(r.rest))
	some, r.rest = r.rest[:n], r.rest[n:]
	return some, nil
}

func TestARebuildThatIsInterruptedBeginsAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("rebuilds figures")
	}

	t.Parallel()
	c, events := openUncompacted(t), twoDays(3, 300)
	produceEvents(t, c, events)
	stop := start(t, c)
	live := await(t, c, events)
	stop()
	rows := readRows(t, c)
	damage(t, c)

	requests, slow := askRebuild(0), slowLog{kafka.NewLog(c), make(chan struct{})}
	stop = startWith(t, c, Deps{LogReader: slow, Rebuilds: requests})
	for range 2 { // the first event, and some
		slow.reads <- struct{}{}
	}

	stop()
	if open, _ := requests.ListOpen(t.Context()); len(open) != 1 {
		t.Fatal("the rebuild has ended")
	}

	stop = startWith(t, c, Deps{LogReader: kafka.NewLog(c), Rebuilds: requests})
	if r := requests.await(t); r.State != RebuildDone {
		t.Fatalf("%+v", r)
	}

	compare(t, readRows(t, c), rows)
	values, _ := readFigures(t, c)
	compare(t, values, live)
	stop()
}

// trimmedLog is a log whose first records were deleted.
type trimmedLog struct {
	kafka.Log
	first int64
}

func (l trimmedLog) Offsets(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	first, next, err = l.Log.Offsets(ctx, topic, partition)
	if topic == event.TopicEvents {
		first = l.first
	}
	return first, next, err
}

// unix returns a time in the format of keys.
func unix(clock string) string { return strconv.FormatInt(clockTime(clock).Unix(), 10) }

// Rows whose events the log no longer holds stay as they are, and so do those of
// agents as long as no event has told their state.
func TestARebuildLeavesWhatTheLogNoLongerHolds(t *testing.T) {
	if testing.Short() {
		t.Skip("rebuilds figures")
	}

	t.Parallel()
	c := openUncompacted(t)
	s := new(script).
		at("09:00:00", login("away")).  // and nothing more of it
		at("09:00:00", login("stays")). // its state is told again late
		at("09:10:00", entered("sales", "c1")).at("09:10:10", answered("sales", "c1", "a1")).
		at("09:20:00", logout("a1"))
	first := int64(len(s.events))
	s.at("1+09:05:00", entered("sales", "c2")). // the first event that is left
							at("1+09:05:03", abandoned("sales", "c2")).
							at("2+10:00:00", entered("sales", "c3")).at("2+10:00:30",
		answered("sales", "c3", "a2")).at("2+10:05:00", ended("sales", "c3", "a2")).
		at("2+11:05:00", onBreak("stays", "lunch")).at("2+11:20:00", offBreak("stays")).
		at("2+12:00:00", login("a3")).at("2+13:00:00", entered("sales", "c4"))

	for range 30 { // all that was due is done
		s.at("2+13:00:00", tick())
	}

	s.at("2+13:00:01", entered("sales", "c5"))
	produceEvents(t, c, s.events)
	stop := start(t, c)
	live := await(t, c, s.events)
	stop()
	rows := readRows(t, c)

	log := trimmedLog{kafka.NewLog(c), first}
	begins, err := FindLogStart(t.Context(), log, 0)
	if err != nil || begins.Earliest() != clockTime("2+09:15:00").Unix() {
		t.Fatalf("%+v, earliest %d, %v", begins, begins.Earliest(), err)
	}

	refused := askRebuild(begins.Earliest() - 900)
	stop = startWith(t, c, Deps{LogReader: log, Rebuilds: refused})
	if r := refused.await(t); r.State != RebuildFailed || !strings.Contains(r.Message, "2026-11-22T09:15:00Z") {
		t.Errorf("%+v", r)
	}

	stop()
	compare(t, readRows(t, c), rows)

	// Wrong: a queue's row, and those of an agent before and after its state was told.
	w := newWorker(t, c)
	var records []kafka.Record

	wrong := []string{"acme|queue|sales|" + unix("2+10:00:00"), "acme|agent|stays|" + unix("2+11:15:00"),
		"acme|agent|stays|" + unix("2+10:30:00")}
	for _, key := range wrong {
		value := bytes.ReplaceAll([]byte(live[key]), []byte(`answered":`), []byte(`answered":7`))
		records = append(records, w.newRecord(Record{Key: key, Value: value, EventID: w.position.EventID}))
	}

	if _, err := w.writeWithRetry(t.Context(), records); err != nil {
		t.Fatal(err)
	}

	kept := readRows(t, c)[wrong[2]]
	if kept == rows[wrong[2]] {
		t.Fatal("the row is not wrong")
	}

	requests := askRebuild(begins.Earliest())
	stop = startWith(t, c, Deps{LogReader: log, Rebuilds: requests})
	if r := requests.await(t); r.State != RebuildDone {
		t.Fatalf("%+v", r)
	}

	stop()
	rows[wrong[2]], live[wrong[2]] = kept, kept
	compare(t, readRows(t, c), rows)
	values, _ := readFigures(t, c)
	compare(t, values, live)
}

// A fold from the beginning of the log knows agents that the one before did not: the alert that it
// never had ends, and one that only it has begins.
func TestARebuildEndsAndBeginsAlerts(t *testing.T) {
	rules := testRules()
	rules.Alerts = fixedAlerts{{Name: "nobody",
		When: AlertWhen{Metric: MetricAgentsAvailable, Below: limit(1), WhileWaiting: true}}}
	s := new(script).at("09:00:00", joined("a1", "sales")).at("09:00:00", login("a1")).at("09:01:00",
		entered("sales", "c1"))

	for _, name := range []event.Name{event.NameAlertEnded, event.NameAlertStarted} {
		whole, part := NewFold(rules), NewFold(rules)
		for i := range s.events {
			whole.Apply(&s.events[i])
			if i == 2 {
				part.Apply(&s.events[i])
			}
		}

		began := announced{}
		began.take(t, part)

		after, before := whole, part
		if name == event.NameAlertStarted {
			after, before = part, whole
		}

		after.alerts.announceDifferences(before.table)
		told := announced{}
		told.take(t, after)

		for o := range told.occurrences(t) {
			if o.Started != clockMS("09:01:00") || o.Ended != (name == event.NameAlertEnded) {
				t.Errorf("%s: %+v", name, o)
			}
		}

		if len(told) != 1 || len(began) != 1 {
			t.Errorf("%s: %v after %v", name, told, began)
		}
	}
}

// An agent of whom the log has lost the beginning is taken from the fold before: it is still one of its queue.
func TestARebuildCountsTheAgentsThatItTakesOver(t *testing.T) {
	rules := testRules()
	rules.Alerts = fixedAlerts{{Name: "nobody",
		When: AlertWhen{Metric: MetricAgentsAvailable, Below: limit(1), WhileWaiting: true}}}
	s := new(script).at("09:00:00", joined("a1", "sales")).at("09:00:00", login("a1")).at("09:01:00",
		entered("sales", "c1"))

	before, after := NewFold(rules), NewFold(rules)
	for i := range s.events[:2] {
		before.Apply(&s.events[i])
	}

	after.Advance(before.Last())
	after.table.insert(before.table.entries[newKey(kindOpenAgent, account, "a1", 0)])
	after.alerts.begin()
	after.Apply(&s.events[2])

	for _, a := range after.TakeAlerts() {
		t.Errorf("%s", a.Data)
	}
}
