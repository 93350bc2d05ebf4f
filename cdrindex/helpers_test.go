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
	"trunkline/internal/report"
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
func applyRecords(t testing.TB, x *Index, again bool, records ...kafka.Record) batchCounts {
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

// inRange is the filter of an account's rows in a range.
func inRange(account string, start, end int64) Filter {
	return Filter{Filter: report.Filter{Account: account, Start: start, End: end}}
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

		f.After, _ = report.ParseCursor(page.NextStartKey)
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

// memoryTopic is the cdr topic in memory.
type memoryTopic struct{ *kafkatest.Log }

func newMemory(partitions int) memoryTopic { return memoryTopic{kafkatest.NewLog(partitions)} }

// addCall appends the row, made of the raw record at an offset.
func (m memoryTopic) addCall(row event.CDR, partition int, source int64) {
	m.Append(record(row, partition, source))
}

// startIndexer runs an indexer until the returned function is called.
func startIndexer(t testing.TB, x *Index, topics kafka.Log) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := NewIndexer(x, topics, nil).Run(ctx); err != nil {
			t.Error(err)
		}
	})

	return sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
}

func name(format string, args ...any) string { return fmt.Sprintf(format, args...) }
