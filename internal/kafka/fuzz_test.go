package kafka

import (
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// reseal makes the checksum right, so that what is behind it is reached.
func reseal(b []byte) {
	if len(b) >= batchOverhead {
		binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[batchCRCEnd:], castagnoli))
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add(sealed(sequence{}, sample()...), int64(0))
	f.Add(sealed(sequence{}, sample()...), int64(2))
	f.Fuzz(func(t *testing.T, b []byte, from int64) {
		for _, right := range []bool{false, true} {
			if right {
				if len(b) < batchOverhead {
					return
				}
				b = append([]byte(nil), b...)
				binary.BigEndian.PutUint32(b[8:], uint32(len(b)-batchLengthEnd))
				reseal(b)
			}
			d := decoder{}
			d.aborts.reset([]abortedTxn{{1, 0}})
			rest, next, err := d.batch(b, from)
			if err != nil && len(d.records) != 0 {
				t.Fatal("records of a damaged batch")
			}
			if err == nil && rest != nil && next < from && len(d.records) > 0 {
				t.Fatalf("going back from %d to %d", from, next)
			}
			last := int64(-1)
			for _, r := range d.records {
				if r.Offset < from || r.Offset <= last || r.Offset >= next {
					t.Fatalf("offset %d after %d, from %d, next %d", r.Offset, last, from, next)
				}
				last = r.Offset
			}
		}
	})
}

func FuzzResponses(f *testing.F) {
	f.Add([]byte{})
	f.Add(fetchResponse(0, 7, nil, []byte("batches")))
	f.Add(fetchResponse(1, 7, []abortedTxn{{1, 2}}, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := readFetch(b); err == nil && len(got.batches) > len(b) {
			t.Fatal("more than there is")
		}
		if m, err := readMetadata(&wireReader{b: b}); err == nil && m == nil {
			t.Fatal("neither metadata nor an error")
		}
		if _, _, err := readProduced(b); err == nil && len(b) < 30 {
			t.Fatal("taken for written without an answer")
		}
	})
}

// fetchResponse is a response about one partition.
func fetchResponse(code int16, end int64, aborted []abortedTxn, batches []byte) []byte {
	b := appendInt32(nil, 0)
	b = appendInt16(b, 0)
	b = appendInt32(b, 0)
	b = appendInt32(b, 1)
	b = appendString(b, "t")
	b = appendInt32(b, 1)
	b = appendInt32(b, 0)
	b = appendInt16(b, code)
	b = appendInt64(b, end)
	b = appendInt64(b, end)
	b = appendInt64(b, 0)
	b = appendInt32(b, int32(len(aborted)))
	for _, a := range aborted {
		b = appendInt64(appendInt64(b, a.producer), a.first)
	}
	b = appendInt32(b, -1)
	b = appendInt32(b, int32(len(batches)))
	return append(b, batches...)
}

func TestFetchResponseIsReadWhole(t *testing.T) {
	got, err := readFetch(fetchResponse(0, 7, []abortedTxn{{1, 2}, {3, 4}}, []byte("batches")))
	if err != nil || got.err != nil || got.end != 7 || string(got.batches) != "batches" || len(got.aborted) != 2 || got.aborted[1] != (abortedTxn{3, 4}) {
		t.Errorf("%+v, %v", got, err)
	}
	whole := fetchResponse(0, 7, nil, []byte("batches"))
	for n := range len(whole) {
		if _, err := readFetch(whole[:n]); err == nil {
			t.Errorf("%d bytes of %d were enough", n, len(whole))
		}
	}
}

func TestFailedDecodeResponsesNeverPass(t *testing.T) {
	if _, _, err := readProduced(nil); err == nil {
		t.Error("an empty answer to a produce is no acknowledgement")
	}
}
