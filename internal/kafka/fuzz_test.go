package kafka

import (
	"encoding/binary"
	"hash/crc32"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
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
			out, err := d.batch(b, from)
			rest, next := out.found, out.next
			if err != nil && len(d.records) != 0 {
				t.Fatal("records of a damaged batch")
			}
			if err == nil && rest && next < from && len(d.records) > 0 {
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
	f.Add(fetchAnswer(0, 7, nil, []byte("batches")))
	f.Add(fetchAnswer(1, 7, []abortedTxn{{1, 2}}, nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		readFetch(b, func(_ fetchKey, f *fetched) {
			if len(f.batches) > len(b) {
				t.Fatal("more than there is")
			}
		})
		req := kmsg.NewPtrMetadataRequest()
		req.Version = metadataVersion
		if res, err := readResponse(req, b); err == nil {
			if m, err := readMetadata(res.(*kmsg.MetadataResponse), time.Now()); err == nil && m == nil {
				t.Fatal("neither metadata nor an error")
			}
		}
		if _, _, _, err := readProduced(b); err == nil && len(b) < 30 {
			t.Fatal("taken for written without an answer")
		}
	})
}

// fetchAnswer returns a response about one partition.
func fetchAnswer(code int16, end int64, aborted []abortedTxn, batches []byte, diverging ...EpochEnd) []byte {
	b := appendNoTags(nil)
	b = appendInt32(b, 0)
	b = appendInt16(b, 0)
	b = appendInt32(b, 0)
	b = appendCompactArray(b, 1)
	b = append(b, make([]byte, 16)...)
	b = appendCompactArray(b, 1)
	b = appendInt32(b, 0)
	b = appendInt16(b, code)
	b = appendInt64(b, end)
	b = appendInt64(b, end)
	b = appendInt64(b, 0)
	b = appendCompactArray(b, len(aborted))
	for _, a := range aborted {
		b = appendNoTags(appendInt64(appendInt64(b, a.producer), a.first))
	}
	b = appendInt32(b, -1)
	b = append(appendCompactArray(b, len(batches)), batches...)
	b = append(b, byte(len(diverging)))
	for _, d := range diverging {
		b = append(b, 0, 13)
		b = appendNoTags(appendInt64(appendInt32(b, d.LeaderEpoch), d.Offset))
	}
	return appendNoTags(appendNoTags(b))
}

func TestFetchResponseIsReadWhole(t *testing.T) {
	whole := fetchAnswer(0, 7, []abortedTxn{{1, 2}, {3, 4}}, []byte("batches"), EpochEnd{5, 6})
	given := 0
	_, err := readFetch(whole, func(key fetchKey, got *fetched) {
		given++
		if key != (fetchKey{}) || got.err != nil || got.end != 7 || string(got.batches) != "batches" || len(got.aborted) != 2 ||
			got.aborted[1] != (abortedTxn{3, 4}) || *got.diverging != (EpochEnd{5, 6}) {
			t.Errorf("%+v", got)
		}
	})
	if err != nil || given != 1 {
		t.Errorf("%d partitions, %v", given, err)
	}
	for n := range len(whole) {
		if _, err := readFetch(whole[:n], func(fetchKey, *fetched) {}); err == nil {
			t.Errorf("%d bytes of %d were enough", n, len(whole))
		}
	}
}

func TestFailedDecodeResponsesNeverPass(t *testing.T) {
	if _, _, _, err := readProduced(nil); err == nil {
		t.Error("an empty answer to a produce is no acknowledgement")
	}
}
