package feed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/internal/kafka"
	"trunkline/internal/setting"
)

// testEntry is a record that is told from others by its number.
func testEntry(n int) queueEntry {
	return queueEntry{readAt: time.UnixMilli(1_700_000_000_000 + int64(n)), record: kafka.Record{
		Topic: "cc.raw", Key: []byte("acme"), Value: fmt.Appendf(nil, `{"n":%d}`, n),
		Headers: []kafka.Header{{Key: "format", Value: []byte("f")}},
	}}
}

// testEntries are those from a number up to, and without, another.
func testEntries(from, to int) (all []queueEntry) {
	for n := from; n < to; n++ {
		all = append(all, testEntry(n))
	}
	return all
}

// openTestSpool opens a spool, which adds the records that it has lost to lost. A test that leaves it without Close
// is a process that was killed.
func openTestSpool(t *testing.T, dir string, limit setting.Bytes, lost *int) *spool {
	t.Helper()
	s, err := openSpool(dir, limit, func(n int) { *lost += n }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// drain returns the values of all records up to the end, at most limit batches.
func drain(t *testing.T, s *spool) (values []string, next queuePosition) {
	t.Helper()
	for range 10_000 {
		entries, at, err := s.Next(s.End())
		if err != nil {
			t.Fatal(err)
		}

		next = at
		for _, e := range entries {
			values = append(values, string(e.record.Value))
		}

		if len(entries) == 0 && !next.before(s.End()) {
			return values, next
		}
	}

	t.Fatal("the spool has no end")
	return nil, next
}

// wantValues fails unless got has the values of testEntry from the first number of each span up to, and without, the
// second.
func wantValues(t *testing.T, got []string, spans ...[2]int) {
	t.Helper()
	var want []string
	for _, span := range spans {
		for n := span[0]; n < span[1]; n++ {
			want = append(want, string(testEntry(n).record.Value))
		}
	}

	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("got %d records %.200v, want %d %.200v", len(got), got, len(want), want)
	}
}

func TestAKilledProcessLeavesWhatItHasAppended(t *testing.T) {
	dir, lost := t.TempDir(), 0
	first := openTestSpool(t, dir, 16<<20, &lost)
	for n := range 10 {
		if err := first.Append(testEntries(10*n, 10*n+10)); err != nil {
			t.Fatal(err)
		}
	}

	limit := first.End()
	if err := first.Append(testEntries(100, 110)); err != nil {
		t.Fatal(err)
	}

	entries, next, err := first.Next(limit)
	if err != nil || len(entries) != 100 || next != limit {
		t.Fatalf("%d records before %v, to %v: %v", len(entries), limit, next, err)
	}

	if e := entries[7]; !e.readAt.Equal(testEntry(7).readAt) || string(e.record.Key) != "acme" ||
		e.record.Topic != "cc.raw" || string(e.record.Header("format")) != "f" {
		t.Errorf("a record is read as %+v", e)
	}
	if err := first.Done(t.Context(), next); err != nil {
		t.Fatal(err)
	}

	second := openTestSpool(t, dir, 16<<20, &lost)
	if err := second.Append(testEntries(110, 120)); err != nil {
		t.Fatal(err)
	}

	values, next := drain(t, second)
	wantValues(t, values, [2]int{100, 120})
	if err := second.Done(t.Context(), next); err != nil {
		t.Fatal(err)
	}

	third := openTestSpool(t, dir, 16<<20, &lost)
	if values, _ := drain(t, third); len(values) != 0 || lost != 0 {
		t.Errorf("sent again: %v; lost %d", values, lost)
	}

	// Even where a power failure has taken all segments and left the checkpoint.
	files, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	if err != nil {
		t.Fatal(err)
	}

	for _, file := range files {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}

	fourth := openTestSpool(t, dir, 16<<20, &lost)
	if err := fourth.Append(testEntries(0, 3)); err != nil {
		t.Fatal(err)
	}

	values, _ = drain(t, fourth)
	wantValues(t, values, [2]int{0, 3})
}

func TestARecordThatWasBeingWrittenIsLeftOut(t *testing.T) {
	whole := appendedBytes(t, testEntries(0, 3))
	one := len(appendedBytes(t, testEntries(2, 3)))
	for cut := 1; cut < one; cut++ {
		dir, lost := t.TempDir(), 0
		if err := os.WriteFile(filepath.Join(dir, "0000000000000001.spool"), whole[:len(whole)-cut],
			0o600); err != nil {
			t.Fatal(err)
		}

		s := openTestSpool(t, dir, 16<<20, &lost)
		if err := s.Append(testEntries(3, 5)); err != nil {
			t.Fatal(err)
		}

		values, _ := drain(t, s)
		wantValues(t, values, [2]int{0, 2}, [2]int{3, 5})
		if lost != 0 {
			t.Errorf("cut by %d: %d lost", cut, lost)
		}

		_ = s.Close()
	}
}

// appendedBytes returns what a spool writes for entries.
func appendedBytes(t *testing.T, entries []queueEntry) []byte {
	t.Helper()
	dir, lost := t.TempDir(), 0
	s := openTestSpool(t, dir, 16<<20, &lost)
	if err := s.Append(entries); err != nil {
		t.Fatal(err)
	}

	content, err := os.ReadFile(s.segmentPath(1))
	if err != nil {
		t.Fatal(err)
	}

	return content
}

func TestAFullSpoolTakesNothingUntilKafkaHasSome(t *testing.T) {
	dir, lost := t.TempDir(), 0
	s := openTestSpool(t, dir, 64<<10, &lost)

	n := 0
	for ; ; n++ {
		err := s.Append(testEntries(n, n+1))
		if errors.Is(err, errSpoolFull) {
			break
		}
		if err != nil || s.Bytes() > 64<<10 {
			t.Fatalf("record %d, %d bytes: %v", n, s.Bytes(), err)
		}
	}

	values, next := drain(t, s)
	wantValues(t, values, [2]int{0, n})
	if err := s.Append(testEntries(n, n+1)); !errors.Is(err, errSpoolFull) {
		t.Errorf("reading alone makes no space: %v", err)
	}
	if err := s.Done(t.Context(), next); err != nil {
		t.Fatal(err)
	}

	select {
	case <-s.freed:
	default:
		t.Error("Wake was not signalled after space became free")
	}

	if err := s.Append(testEntries(n, n+1)); err != nil {
		t.Fatal(err)
	}

	values, _ = drain(t, s)
	wantValues(t, values, [2]int{n, n + 1})
}

// fullDisk takes some bytes and then fails like a full disk.
type fullDisk struct {
	segmentFile
	left *int
}

func (f fullDisk) Write(b []byte) (int, error) {
	if *f.left >= len(b) {
		*f.left -= len(b)
		return f.segmentFile.Write(b)
	}
	n, err := f.segmentFile.Write(b[:*f.left])
	*f.left = 0
	return n, errors.Join(err, syscall.ENOSPC)
}

func TestAFullDiskLosesNothing(t *testing.T) {
	dir, lost, left := t.TempDir(), 0, 1000

	s := openTestSpool(t, dir, 16<<20, &lost)
	open := s.openFile
	s.openFile = func(name string, flag int, mode os.FileMode) (segmentFile, error) {
		file, err := open(name, flag, mode)
		return fullDisk{file, &left}, err
	}

	failed := 0
	for n := 0; n < 100; {
		err := s.Append(testEntries(n, n+1))
		switch {
		case err == nil:
			n++
			continue
		case !errors.Is(err, syscall.ENOSPC):
			t.Fatal(err)
		}

		failed++
		if failed%3 == 0 {
			left = 1000
		}
	}

	if failed < 9 {
		t.Errorf("the disk was full %d times", failed)
	}

	values, _ := drain(t, s)
	wantValues(t, values, [2]int{0, 100})
	again := openTestSpool(t, dir, 16<<20, &lost)
	values, _ = drain(t, again)
	wantValues(t, values, [2]int{0, 100})

	if lost != 0 {
		t.Errorf("%d lost", lost)
	}
}

func TestATornCheckpointIsTheOneBefore(t *testing.T) {
	dir, lost := t.TempDir(), 0
	s := openTestSpool(t, dir, 16<<20, &lost)
	if err := s.Append(testEntries(0, 3)); err != nil {
		t.Fatal(err)
	}

	entries, _, err := s.Next(s.End())
	if err != nil || len(entries) != 3 {
		t.Fatal(entries, err)
	}

	one := int64(len(appendedBytes(t, testEntries(0, 1))))
	for n := int64(1); n <= 2; n++ {
		if err := s.Done(t.Context(), queuePosition{1, n * one}); err != nil {
			t.Fatal(err)
		}
	}

	path := filepath.Join(dir, checkpointName)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	content[3] ^= 1 // of the second one, which is in the first place
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}

	values, _ := drain(t, openTestSpool(t, dir, 16<<20, &lost))
	wantValues(t, values, [2]int{1, 3})
}

// writerFunc is an io.Writer of a function.
type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

// A disk that fails for a while stops the sender only so long: then what was sent is noted, and the spool is freed.
func TestTheSenderOutlivesAFailedCheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, lost := t.TempDir(), 0
		s := openTestSpool(t, dir, 64<<10, &lost)
		for n := range 100 {
			if err := s.Append(testEntries(n, n+1)); err != nil {
				t.Fatal(err)
			}
		}

		healthy := s.checkpoint
		failing, err := os.Open(healthy.Name()) // cannot be written
		if err != nil {
			t.Fatal(err)
		}
		defer failing.Close()

		failures := 0
		s.checkpoint = failing
		// The sender itself writes the log.
		s.log = slog.New(slog.NewTextHandler(writerFunc(func([]byte) {
			failures++
			if failures == 3 {
				s.checkpoint = healthy
			}
		}), nil))

		k, before := newFakeKafka(), s.Bytes()
		sending := newSender(s, &kafkaOutput{producer: k, onDropped: func(int) {}, log: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- sending.Run(ctx) }()
		time.Sleep(10 * time.Second)
		cancel()

		if err := <-ended; err != nil || failures != 3 || len(k.topic("cc.raw")) != 100 || s.Bytes() >= before {
			t.Errorf("%v: %d failures, %d records sent, %d bytes of %d left", err, failures, len(k.topic("cc.raw")),
				s.Bytes(), before)
		}

		values, _ := drain(t, openTestSpool(t, dir, 64<<10, &lost))
		wantValues(t, values)
	})
}

func BenchmarkSpool(b *testing.B) {
	lost := 0
	s, err := openSpool(b.TempDir(), 1<<30, func(n int) { lost += n }, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()

	e := testEntry(1)
	e.record.Value = bytes.Repeat([]byte("x"), 2048)

	batch := make([]queueEntry, 50)
	for i := range batch {
		batch[i] = e
	}

	b.SetBytes(int64(len(batch) * 2048))
	for b.Loop() {
		if err := s.Append(batch); err != nil {
			b.Fatal(err)
		}

		entries, next, err := s.Next(s.End())
		if err != nil || len(entries) != len(batch) {
			b.Fatal(len(entries), err)
		}

		if err := s.Done(b.Context(), next); err != nil {
			b.Fatal(err)
		}
	}

	b.ReportMetric(float64(b.N*len(batch))/b.Elapsed().Seconds(), "events/s")
}
