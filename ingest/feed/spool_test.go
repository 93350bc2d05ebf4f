package feed

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/internal/kafka"
	"trunkline/internal/setting"
)

func testEntry(n int) queueEntry {
	return queueEntry{readAt: time.UnixMilli(1_700_000_000_000 + int64(n)), record: kafka.Record{
		Topic: "cc.raw", Key: []byte("acme"), Value: fmt.Appendf(nil, `{"n":%d}`, n),
		Headers: []kafka.Header{{Key: "format", Value: []byte("f")}},
	}}
}

func testEntries(from, to int) (all []queueEntry) {
	for n := from; n < to; n++ {
		all = append(all, testEntry(n))
	}
	return all
}

// open opens a spool; a test that leaves it without Close is a process that was
// killed.
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

func wantValues(t *testing.T, got []string, numbers ...[2]int) {
	t.Helper()
	var want []string
	for _, span := range numbers {
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

// writeSpool appends batches of records until there are several segments, and returns the number of records and
// the segments' files with the number of the first record in each.
func writeSpool(t *testing.T, dir string, limit setting.Bytes,
	segments int) (records int, files []string, first []int) {
	t.Helper()
	lost := 0
	s := openTestSpool(t, dir, limit, &lost)

	for {
		before := s.End().segment
		if err := s.Append(testEntries(records, records+7)); err != nil {
			t.Fatal(err)
		}
		if s.End().segment != before {
			files, first = append(files, s.segmentPath(s.End().segment)), append(first, records)
		}

		records += 7
		if len(files) == segments && records >= first[segments-1]+14 {
			return records, files, first
		}
	}
}

// recordOffsets returns the offsets of the records of a segment, and its size.
func recordOffsets(content []byte) (offsets []int) {
	at := 0
	for at < len(content) {
		offsets = append(offsets, at)
		at += recordHeader + int(binary.BigEndian.Uint32(content[at:]))
	}
	return append(offsets, at)
}

// One damaged byte loses its record alone, in any segment, at any place. A damaged length loses nothing.
func TestADamagedByteLosesItsRecordAlone(t *testing.T) {
	const segments = 3
	for segment := range segments {
		for _, place := range []string{"first", "middle", "last"} {
			for at := range recordHeader + 20 {
				dir, lost := t.TempDir(), 0
				records, files, first := writeSpool(t, dir, 64<<10, segments)
				content, err := os.ReadFile(files[segment])
				if err != nil {
					t.Fatal(err)
				}

				offsets := recordOffsets(content)
				n := map[string]int{"first": 0, "middle": len(offsets) / 2, "last": len(offsets) - 2}[place]
				content[offsets[n]+at] ^= 0x15
				if err := os.WriteFile(files[segment], content, 0o600); err != nil {
					t.Fatal(err)
				}

				s := openTestSpool(t, dir, 64<<10, &lost)
				if err := s.Append(testEntries(records, records+3)); err != nil {
					t.Fatal(err)
				}

				values, _ := drain(t, s)
				_ = s.Close()
				if at < 4 { // in the length
					wantValues(t, values, [2]int{0, records + 3})
				} else {
					damaged := first[segment] + n
					wantValues(t, values, [2]int{0, damaged}, [2]int{damaged + 1, records + 3})
				}

				if want := map[bool]int{true: 0, false: 1}[at < 4]; lost != want {
					t.Fatalf("%s record of segment %d, byte %d: %d lost, want %d", place, segment, at, lost, want)
				}
			}
		}
	}
}

// Damage over several records, over the end of a segment, or of a whole file is counted by the numbers of the records
// around it.
func TestDamagedRecordsAreCounted(t *testing.T) {
	for name, damage := range map[string]func(content []byte, offsets []int) (left []byte, lost int){
		"three records":       func(b []byte, at []int) ([]byte, int) { clear(b[at[4]+2 : at[6]+9]); return b, 3 },
		"zeros to the end":    func(b []byte, at []int) ([]byte, int) { clear(b[at[4]:]); return b, len(at) - 5 },
		"ones to the end":     func(b []byte, at []int) ([]byte, int) { fill(b[at[4]:], 0xff); return b, len(at) - 5 },
		"cut":                 func(b []byte, at []int) ([]byte, int) { return b[:at[4]+3], len(at) - 5 },
		"the beginning":       func(b []byte, at []int) ([]byte, int) { fill(b[:at[2]+1], 0x20); return b, 3 },
		"the whole segment":   func(b []byte, at []int) ([]byte, int) { fill(b, 0x20); return b, len(at) - 1 },
		"a length behind all": func(b []byte, at []int) ([]byte, int) { b[at[2]+1], b[at[2]+9] = 0x13, 0; return b, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			dir, lost := t.TempDir(), 0
			_, files, _ := writeSpool(t, dir, 64<<10, 3)
			content, err := os.ReadFile(files[1])
			if err != nil {
				t.Fatal(err)
			}

			left, want := damage(content, recordOffsets(content))
			if err := os.WriteFile(files[1], left, 0o600); err != nil {
				t.Fatal(err)
			}

			s := openTestSpool(t, dir, 64<<10, &lost)
			defer s.Close()

			drain(t, s)
			if lost != want {
				t.Errorf("%d records lost, counted %d", want, lost)
			}
		})
	}
}

func fill(b []byte, with byte) {
	for i := range b {
		b[i] = with
	}
}

// A segment larger than the largest record: the record behind a damaged length is far from the segment's end.
func TestADamagedLengthInALargeSegmentIsPassed(t *testing.T) {
	dir, lost := t.TempDir(), 0
	s := openTestSpool(t, dir, 1<<30, &lost)
	large := testEntry(0)
	large.record.Value = bytes.Repeat([]byte("x"), 64<<10)

	const records = 100
	for range records {
		if err := s.Append([]queueEntry{large}); err != nil {
			t.Fatal(err)
		}
	}

	content, err := os.ReadFile(s.segmentPath(1))
	if err != nil {
		t.Fatal(err)
	}

	at := recordOffsets(content)[10]
	content[at+1], content[at+5] = 0x13, content[at+5]^1 // the length and the checksum
	if err := os.WriteFile(s.segmentPath(1), content, 0o600); err != nil {
		t.Fatal(err)
	}
	if values, _ := drain(t, s); len(values) != records-1 || lost != 1 {
		t.Errorf("%d of %d records read, %d lost", len(values), records, lost)
	}
}

// The number of lost records is right after a restart, where the damage is behind the checkpoint.
func TestDamageBehindTheCheckpointIsCounted(t *testing.T) {
	dir, lost := t.TempDir(), 0
	s := openTestSpool(t, dir, 16<<20, &lost)
	for n := range 10 {
		if err := s.Append(testEntries(n, n+1)); err != nil {
			t.Fatal(err)
		}
	}

	content, err := os.ReadFile(s.segmentPath(1))
	if err != nil {
		t.Fatal(err)
	}

	at := recordOffsets(content)
	_, next, err := s.Next(queuePosition{1, int64(at[3])})
	if err != nil {
		t.Fatal(err)
	}

	if err := s.Done(t.Context(), next); err != nil {
		t.Fatal(err)
	}

	fill(content[at[3]:at[7]], 0xee)
	if err := os.WriteFile(s.segmentPath(1), content, 0o600); err != nil {
		t.Fatal(err)
	}

	values, _ := drain(t, openTestSpool(t, dir, 16<<20, &lost))
	wantValues(t, values, [2]int{7, 10})
	if lost != 4 {
		t.Errorf("%d lost, want 4", lost)
	}
}

// Records of an earlier version have no numbers: damage among them is one record.
func TestRecordsWithoutNumbersAreRead(t *testing.T) {
	dir, lost := t.TempDir(), 0
	var segment []byte
	for n := range 5 {
		e := testEntry(n)
		segment = append(segment, withHeader(appendEntry(nil, &e))...)
	}

	segment[recordOffsets(segment)[2]+12] ^= 1
	if err := os.WriteFile(filepath.Join(dir, "0000000000000001.spool"), segment, 0o600); err != nil {
		t.Fatal(err)
	}

	s := openTestSpool(t, dir, 16<<20, &lost)
	if err := s.Append(testEntries(5, 7)); err != nil {
		t.Fatal(err)
	}

	values, _ := drain(t, s)
	wantValues(t, values, [2]int{0, 2}, [2]int{3, 7})
	if lost != 1 {
		t.Errorf("%d lost, want 1", lost)
	}
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
		sending := newSender(s, &kafkaOutput{k, nil, func(int) {}, slog.New(slog.DiscardHandler)})
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

func FuzzSegment(f *testing.F) {
	var bodies, segment []byte
	for n := range 3 {
		e := testEntry(n)
		body := appendEntry(nil, &e)
		bodies, segment = append(bodies, body...), append(segment, withHeader(body)...)
		f.Add(segment, body)
	}

	f.Add([]byte{0, 0, 0, 1, 0, 0, 0, 0, 9}, bodies)
	// Before a record with a valid checksum and arbitrary content.
	f.Fuzz(func(t *testing.T, content, body []byte) {
		dir, lost := t.TempDir(), 0
		if err := os.WriteFile(filepath.Join(dir, "0000000000000001.spool"), slices.Concat(content, withHeader(body)),
			0o600); err != nil {
			t.Fatal(err)
		}

		s := openTestSpool(t, dir, 16<<20, &lost)
		defer s.Close()

		if err := s.Append(testEntries(0, 1)); err != nil {
			t.Fatal(err)
		}

		values, _ := drain(t, s) // ends, whatever the bytes
		if len(values) == 0 || values[len(values)-1] != `{"n":0}` {
			t.Errorf("the record behind is gone: %q", values)
		}
	})
}

// withHeader returns the bytes of a record in a segment.
func withHeader(body []byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	return append(binary.BigEndian.AppendUint32(b, crc32.Checksum(body, castagnoli)), body...)
}

// Whatever one change does to a segment: what is read is what was appended, in order, and what is not read
// is counted, except records that were cut off at the end.
func FuzzDamage(f *testing.F) {
	f.Add(uint16(3), uint16(1), byte(0x13), uint16(0))
	f.Add(uint16(90), uint16(200), byte(0), uint16(0))
	f.Add(uint16(0), uint16(0), byte(0), uint16(70))

	f.Fuzz(func(t *testing.T, at, size uint16, with byte, cut uint16) {
		const records = 20
		dir, lost := t.TempDir(), 0

		content := bytes.Clone(appendedBytes(t, testEntries(0, records)))
		content = content[:len(content)-min(len(content), int(cut))]
		for i := int(at); i < min(len(content), int(at)+int(size)); i++ {
			content[i] = with
		}

		if err := os.WriteFile(filepath.Join(dir, "0000000000000001.spool"), content, 0o600); err != nil {
			t.Fatal(err)
		}

		s := openTestSpool(t, dir, 16<<20, &lost)
		defer s.Close()

		if err := s.Append(testEntries(records, records+2)); err != nil {
			t.Fatal(err)
		}

		values, _ := drain(t, s)
		next, missing := 0, 0
		for _, value := range values {
			var n int
			if _, err := fmt.Sscanf(value, `{"n":%d}`, &n); err != nil || n < next {
				t.Fatalf("read %q behind %d", value, next-1)
			}
			if n < records {
				missing += n - next
			}

			next = n + 1
		}

		if next != records+2 {
			t.Fatalf("the records behind are gone: %q", values)
		}
		if lost < missing || lost > missing+1 {
			t.Errorf("%d records are missing before others, %d were counted", missing, lost)
		}
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
