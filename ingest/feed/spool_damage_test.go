package feed

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"trunkline/internal/setting"
)

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

// fill sets all bytes.
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
