package cdrindex

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// Times of the tests, Unix seconds.
var (
	november = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).Unix()
	december = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC).Unix()
)

const endOfTime = 253_402_300_799 // the last second of year 9999

func discardLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

// onBoth runs test on SQLite and on PostgreSQL.
func onBoth(t *testing.T, test func(t *testing.T, x *Index)) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) { test(t, openIndex(t, Settings{}, at)) })
}

func openIndex(t testing.TB, cfg Settings, at sqldb.Config) *Index {
	t.Helper()
	db := testdb.Open(t, at)
	x, err := New(context.Background(), cfg, db, prometheus.NewRegistry(), discardLog())
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// call returns a row with default values.
func call(account, id string, started int64) event.CDR {
	return event.CDR{
		ID: time.Unix(started, 0).UTC().Format("200601-") + id, AccountID: account, CallID: id,
		InteractionID: "i-" + id, From: "1001", To: "1002", Timestamp: started, EndedTime: started + 10,
	}
}

// record is the row as the normalizer writes it, made of the raw record at
// that position.
func record(row event.CDR, partition int, offset int64) kafka.Record {
	value, err := json.Marshal(&row)
	if err != nil {
		panic(err)
	}
	return kafka.Record{
		Topic: event.TopicCDR, Partition: partition, Offset: offset, Time: time.UnixMilli(1_795_256_000_000 + offset),
		Key: []byte(row.AccountID), Value: value,
		Headers: []kafka.Header{{Key: event.HeaderPosition,
			Value: []byte(event.Position{Partition: partition, Offset: offset}.String())}},
	}
}

// applyRecords applies the records in one batch, as a reindex does when again is set.
func applyRecords(t testing.TB, x *Index, again bool, records ...kafka.Record) outcome {
	t.Helper()
	b := batch{overwrite: again}
	for i := range records {
		e, err := decodeEntry(&records[i], 0)
		if err != nil {
			t.Fatal(err)
		}
		b.entries = append(b.entries, e)
	}
	did, err := x.apply(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	return did
}

// storeRows puts rows at positions of their own.
func storeRows(t testing.TB, x *Index, rows ...event.CDR) {
	t.Helper()
	var records []kafka.Record
	for i, row := range rows {
		records = append(records, record(row, 0, int64(i)))
	}
	applyRecords(t, x, true, records...)
}

// listCallIDs are the call ids of all the filter's rows, page by page.
func listCallIDs(t testing.TB, x *Index, f Filter) []string {
	t.Helper()
	ids := []string{}
	for {
		page, err := x.List(context.Background(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Data {
			ids = append(ids, row.CallID)
		}
		if page.NextStartKey == "" {
			return ids
		}
		f.StartKey = page.NextStartKey
	}
}

func checkIDs(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// count is the number of lines in a table.
func count(t testing.TB, x *Index, table string) (n int) {
	t.Helper()
	if err := x.db.QueryRowContext(context.Background(), `SELECT COUNT(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// waitUntil waits for the result of another goroutine.
func waitUntil(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func wantKind(t testing.TB, err error, kind fault.Kind, fields ...string) {
	t.Helper()
	if fault.KindOf(err) != kind {
		t.Errorf("got %v, want kind %s", err, kind)
		return
	}
	var named []string
	for _, f := range fault.As(err).Fields {
		named = append(named, f.Field)
	}
	if !slices.Equal(named, fields) {
		t.Errorf("blames %q, want %q", named, fields)
	}
}

// memoryTopic is a topic in memory whose group assigns every partition to every member: the
// worst possible overlap.
type memoryTopic struct {
	mu      sync.Mutex
	logs    [][]kafka.Record
	first   []int64
	changed chan struct{}
	id      kafka.TopicID
	epoch   int32 // of the leader; added records have it
	damage  *kafka.GapError
	most    int // records of one Read
}

func newMemory(partitions int) *memoryTopic {
	return &memoryTopic{
		id: kafka.TopicID{1}, logs: make([][]kafka.Record, partitions), first: make([]int64, partitions),
		changed: make(chan struct{}), most: 10,
	}
}

// add appends the row, made of the raw record at an offset.
func (m *memoryTopic) add(row event.CDR, partition int, source int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := record(row, partition, source)
	r.LeaderEpoch = m.epoch
	r.Offset = m.first[partition] + int64(len(m.logs[partition]))
	m.logs[partition] = append(m.logs[partition], r)
	close(m.changed)
	m.changed = make(chan struct{})
}

func (m *memoryTopic) Work(ctx context.Context, work func(context.Context, int, func(int64)) error) error {
	var group sync.WaitGroup
	for p := range m.logs {
		group.Go(func() {
			for ctx.Err() == nil {
				_ = work(ctx, p, func(int64) {}) // restarted, as by a group
			}
		})
	}
	group.Wait()
	return nil
}

func (m *memoryTopic) Partitions(context.Context) (int, error) { return len(m.logs), nil }

func (m *memoryTopic) Offsets(_ context.Context, p int) (first, next int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.first[p], m.first[p] + int64(len(m.logs[p])), nil
}

func (m *memoryTopic) TopicID(context.Context) (kafka.TopicID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.id, nil
}

func (m *memoryTopic) CheckPosition(_ context.Context, p int, at kafka.LogPosition) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return kafkatest.Partition{Topic: event.TopicCDR, TopicID: m.id, Number: p, First: m.first[p],
		Records: m.logs[p]}.CheckPosition(at)
}

func (m *memoryTopic) Read(p int, from kafka.LogPosition) Reader {
	return &memoryReader{m: m, p: p, next: from.Offset}
}

type memoryReader struct {
	m         *memoryTopic
	p         int
	next, end int64
}

func (r *memoryReader) Next() int64 { return r.next }
func (r *memoryReader) Lag() int64  { return r.end - r.next }
func (r *memoryReader) Close()      {}

func (r *memoryReader) Read(ctx context.Context) ([]kafka.Record, error) {
	for {
		records, changed, err := r.try()
		if err != nil || len(records) > 0 {
			return records, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (r *memoryReader) try() ([]kafka.Record, chan struct{}, error) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	log, first := r.m.logs[r.p], r.m.first[r.p]
	r.end = first + int64(len(log))
	if c := r.m.damage; c != nil && c.Offset == r.next {
		return nil, nil, c
	}
	if r.next < first || r.next > r.end {
		return nil, nil, kafka.OutOfRange(event.TopicCDR, r.p, r.next, first, r.end)
	}
	n := min(int(r.end-r.next), r.m.most)
	if c := r.m.damage; c != nil && c.Offset > r.next {
		n = min(n, int(c.Offset-r.next))
	}
	records := log[r.next-first:][:n]
	r.next += int64(n)
	return records, r.m.changed, nil
}

// startIndexer runs an indexer until the returned function is called.
func startIndexer(t testing.TB, x *Index, topic Topic) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := NewIndexer(x, topic, nil).Run(ctx); err != nil {
			t.Error(err)
		}
	})
	return sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
}

func name(format string, args ...any) string { return fmt.Sprintf(format, args...) }
