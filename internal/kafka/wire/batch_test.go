package wire

import (
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var update = flag.Bool("update", false, "write golden files")

// sealed returns a batch of the records as a producer makes it.
func sealed(seq ProducerState, records ...Record) []byte {
	b := NewBatchBuilder(nil, nil)
	for i := range records {
		b.Append(&records[i], records[i].Time.UnixMilli())
	}
	b.Seal(seq)
	return b.Encoded
}

func sample() []Record {
	at := time.UnixMilli(1_795_000_000_123)
	return []Record{
		{Time: at, Key: []byte("account"), Value: []byte(`{"a":1}`),
			Headers: []Header{{"format", []byte("generic")}, {"nil", nil}, {"", []byte{}}}},
		{Time: at.Add(-70 * time.Millisecond)},
		{Time: at.Add(time.Hour), Key: []byte{}, Value: []byte(strings.Repeat("long ", 40))},
	}
}

func TestBatchBytesAreAsTheyAlwaysWere(t *testing.T) {
	const path = "testdata/batch.hex"
	got := hex.Dump(sealed(ProducerState{ProducerID: 4711, Epoch: 3, NextSequence: 42}, sample()...))
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if got != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFranzReadsTheBatchWeWrite(t *testing.T) {
	records := sample()
	frame := sealed(ProducerState{ProducerID: 4711, Epoch: 3, NextSequence: 42}, records...)
	var b kmsg.RecordBatch
	if err := b.ReadFrom(frame); err != nil {
		t.Fatal(err)
	}

	if b.ProducerID != 4711 || b.ProducerEpoch != 3 || b.FirstSequence != 42 || b.NumRecords != 3 ||
		b.LastOffsetDelta != 2 ||
		b.Magic != 2 || int(b.Length) != len(frame)-12 || b.MaxTimestamp != records[2].Time.UnixMilli() {
		t.Errorf("header %+v", b)
	}

	rest := b.Records
	for i := range records {
		var r kmsg.Record
		size, n := kmsgVarint(rest)
		if err := r.ReadFrom(rest[:n+size]); err != nil {
			t.Fatal(err)
		}

		rest = rest[n+size:]
		if !same(r.Key, records[i].Key) || !same(r.Value, records[i].Value) ||
			len(r.Headers) != len(records[i].Headers) ||
			b.FirstTimestamp+r.TimestampDelta64 != records[i].Time.UnixMilli() || int(r.OffsetDelta) != i {
			t.Errorf("record %d: %+v", i, r)
		}
	}

	if len(rest) != 0 {
		t.Errorf("%d bytes too many", len(rest))
	}
}

func kmsgVarint(b []byte) (int, int) {
	r := FieldReader{B: b}
	v := r.varint()
	return int(v), len(b) - len(r.B)
}

func same(a, b []byte) bool { return (a == nil) == (b == nil) && string(a) == string(b) }

func TestRecordSizeNeverFallsShort(t *testing.T) {
	for _, r := range append(sample(), Record{Time: time.UnixMilli(1 << 53), Value: make([]byte, 1<<20)}) {
		if got, most := len(appendRecord(nil, &r, 1<<31, -1<<53)), RecordSize(&r); got > most || most > got+20 {
			t.Errorf("%d bytes, said %d", got, most)
		}
	}
}

func TestSequenceWrapsAsTheBrokerExpects(t *testing.T) {
	s := ProducerState{NextSequence: 1<<31 - 3}
	s.Advance(5)
	if s.NextSequence != 2 {
		t.Errorf("got %d", s.NextSequence)
	}
}

func TestDecoderGivesWhatWasWritten(t *testing.T) {
	want := sample()
	frame := sealed(ProducerState{}, want...)
	for _, from := range []int64{0, 1, 3} {
		d := Decoder{Topic: "t", Partition: 7}
		b, err := d.Decode(frame, from)
		if err != nil || !b.Found || len(b.Rest) != 0 || b.Next != 3 {
			t.Fatalf("%+v, %v", b, err)
		}

		if len(d.Records) != len(want)-int(from) {
			t.Fatalf("%d records from %d", len(d.Records), from)
		}

		for _, g := range d.Records {
			w := want[g.Offset]
			if !same(g.Key, w.Key) || !same(g.Value, w.Value) || !g.Time.Equal(w.Time) || g.Topic != "t" ||
				g.Partition != 7 || len(g.Headers) != len(w.Headers) {
				t.Errorf("offset %d: %+v", g.Offset, g)
			}

			for i, h := range g.Headers {
				if h.Key != w.Headers[i].Key || !same(h.Value, w.Headers[i].Value) {
					t.Errorf("offset %d: header %d %+v", g.Offset, i, h)
				}
			}
		}
	}
}

func TestDecoderFindsEveryChangedBit(t *testing.T) {
	frame := sealed(ProducerState{}, sample()...)
	for i := range len(frame) * 8 {
		damaged := append([]byte(nil), frame...)
		damaged[i/8] ^= 1 << (i % 8)
		if at := i / 8; at < 8 || at >= 12 && at < 16 {
			continue // base offset and leader epoch are the broker's to set, outside the checksum
		}

		d := Decoder{}
		b, err := d.Decode(damaged, 0)
		if err == nil && b.Found && len(d.Records) > 0 {
			t.Fatalf("bit %d: taken for good", i)
		}

		var what corruptError
		if err != nil && !errors.As(err, &what) {
			t.Fatalf("bit %d: %v", i, err)
		}
	}
}

func TestDecoderRefusesWhatLies(t *testing.T) {
	resealed := func(change func([]byte)) []byte {
		b := sealed(ProducerState{}, sample()...)
		change(b)
		reseal(b)
		return b
	}

	for name, b := range map[string][]byte{
		"more records than there are":    resealed(func(b []byte) { b[60] = 200; b[26] = 250 }),
		"fewer records than there are":   resealed(func(b []byte) { b[60] = 1 }),
		"more records than offsets":      resealed(func(b []byte) { b[60] = 9 }),
		"an unknown compression":         resealed(func(b []byte) { b[22] = 5 }),
		"records that do not unpack":     resealed(func(b []byte) { b[22] = 1 }),
		"offsets that do not rise":       resealed(func(b []byte) { b[61+2+1] = 6 }),
		"an older format":                resealed(func(b []byte) { b[16] = 1 }),
		"an impossible length":           append([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0}, make([]byte, 100)...),
		"a length shorter than a header": append([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3}, make([]byte, 100)...),
	} {
		d := Decoder{}
		_, err := d.Decode(b, 0)
		var what corruptError
		if !errors.As(err, &what) {
			t.Errorf("%s: %v", name, err)
		}

		if len(d.Records) != 0 {
			t.Errorf("%s: records were given", name)
		}
	}
}

func TestDecoderWaitsForTheRestOfABatch(t *testing.T) {
	frame := sealed(ProducerState{}, sample()...)
	for n := range len(frame) {
		d := Decoder{}
		if b, err := d.Decode(frame[:n], 0); b.Found || err != nil || len(d.Records) != 0 {
			t.Fatalf("%d bytes: %v, %v", n, b, err)
		}
	}
}

func TestMemoryOfEarlierBatchesOutlivesLaterOnes(t *testing.T) {
	frame := sealed(ProducerState{}, sample()...)
	d := Decoder{}
	for range 100 {
		if _, err := d.Decode(frame, 0); err != nil {
			t.Fatal(err)
		}
	}

	for i, r := range d.Records {
		if i%3 == 0 && (r.Header("format") == nil || string(r.Header("format")) != "generic") {
			t.Fatalf("record %d lost its header", i)
		}
	}
}
