package wire

import (
	"testing"
	"time"
)

// A few kilobytes decompress to a record above the bound: it is reported with its offset
// and key, and the records around it are read.
func TestARecordAboveTheBoundIsReportedAndPassed(t *testing.T) {
	at := time.UnixMilli(1_795_000_000_000)
	large := Record{Time: at, Key: []byte("acme"), Value: make([]byte, maxDecompressedRecordBytes+1),
		Headers: []Header{{"h", []byte("v")}}}
	longKey := Record{Time: at, Key: make([]byte, maxDecompressedRecordBytes+1)}
	records := []Record{{Time: at, Value: []byte("first")}, large, longKey, {Time: at, Value: []byte("last")}}

	for _, codec := range []string{"lz4", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			b := NewBatchBuilder(nil, nil)
			for i := range records {
				b.Append(&records[i], records[i].Time.UnixMilli())
			}

			if err := b.Compress(codec); err != nil {
				t.Fatal(err)
			}

			b.Seal(ProducerState{ProducerID: 1})

			d := &Decoder{Topic: "t"}
			var got []Record
			next := int64(0)

			for more := true; more; {
				d.Reset()
				out, err := d.Decode(b.Encoded, next)
				if err != nil {
					t.Fatal(err)
				}

				for i := range d.Records {
					got = append(got, *d.Records[i].Clone())
				}

				more, next = out.More, out.Next
			}

			if len(got) != len(records) || next != int64(len(records)) {
				t.Fatalf("%d records, next offset %d", len(got), next)
			}

			for i, r := range got {
				if r.Offset != int64(i) || !r.Time.Equal(at) ||
					(r.Oversized > maxDecompressedRecordBytes) != (i == 1 || i == 2) {
					t.Errorf("record %d: %d, %v, %d bytes", i, r.Offset, r.Time, r.Oversized)
				}
			}

			if string(got[0].Value) != "first" || string(got[3].Value) != "last" || string(got[1].Key) != "acme" ||
				got[1].Value != nil || got[2].Key != nil {
				t.Errorf("key %q and value %.20q, values %q and %q", got[1].Key, got[1].Value, got[0].Value,
					got[3].Value)
			}

			if cap(d.window) > 2*maxWindowBytes {
				t.Errorf("the window has %d bytes", cap(d.window))
			}
		})
	}
}
