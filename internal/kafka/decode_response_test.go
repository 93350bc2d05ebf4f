package kafka

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/internal/kafka/wire"
)

func FuzzResponses(f *testing.F) {
	f.Add([]byte{})
	f.Add(fetchAnswer(0, 7, nil, []byte("batches")))
	f.Add(fetchAnswer(1, 7, []wire.AbortedTransaction{{Producer: 1, FirstOffset: 2}}, nil))

	f.Fuzz(func(t *testing.T, b []byte) {
		readFetchResponse(b, func(_ fetchKey, f *fetchedPartition) {
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

		if answer := readProduceResponse(b, produceTarget{"t", 0})[0]; answer.err == nil && len(b) < 30 {
			t.Fatal("taken for written without an answer")
		}
	})
}

// fetchAnswer returns a response about one partition.
func fetchAnswer(code int16, end int64, aborted []wire.AbortedTransaction, batches []byte,
	diverging ...EpochEnd) []byte {
	b := wire.AppendNoTags(nil)
	b = wire.AppendInt32(b, 0)
	b = wire.AppendInt16(b, 0)
	b = wire.AppendInt32(b, 0)
	b = wire.AppendCompactArrayLen(b, 1)
	b = append(b, make([]byte, 16)...)
	b = wire.AppendCompactArrayLen(b, 1)
	b = wire.AppendInt32(b, 0)
	b = wire.AppendInt16(b, code)
	b = wire.AppendInt64(b, end)
	b = wire.AppendInt64(b, end)
	b = wire.AppendInt64(b, 0)
	b = wire.AppendCompactArrayLen(b, len(aborted))

	for _, a := range aborted {
		b = wire.AppendNoTags(wire.AppendInt64(wire.AppendInt64(b, a.Producer), a.FirstOffset))
	}

	b = wire.AppendInt32(b, -1)
	b = append(wire.AppendCompactArrayLen(b, len(batches)), batches...)
	b = append(b, byte(len(diverging)))

	for _, d := range diverging {
		b = append(b, 0, 13)
		b = wire.AppendNoTags(wire.AppendInt64(wire.AppendInt32(b, d.LeaderEpoch), d.Offset))
	}

	return wire.AppendNoTags(wire.AppendNoTags(b))
}

func TestFetchResponseIsReadWhole(t *testing.T) {
	whole := fetchAnswer(0, 7, []wire.AbortedTransaction{{Producer: 1, FirstOffset: 2}, {Producer: 3, FirstOffset: 4}},
		[]byte("batches"), EpochEnd{5, 6})
	given := 0
	_, err := readFetchResponse(whole, func(key fetchKey, got *fetchedPartition) {
		given++
		if key != (fetchKey{}) || got.err != nil || got.end != 7 || string(got.batches) != "batches" ||
			len(got.aborted) != 2 ||
			got.aborted[1] != (wire.AbortedTransaction{Producer: 3, FirstOffset: 4}) ||
			*got.diverging != (EpochEnd{5, 6}) {
			t.Errorf("%+v", got)
		}
	})
	if err != nil || given != 1 {
		t.Errorf("%d partitions, %v", given, err)
	}

	for n := range len(whole) {
		if _, err := readFetchResponse(whole[:n], func(fetchKey, *fetchedPartition) {}); err == nil {
			t.Errorf("%d bytes of %d were enough", n, len(whole))
		}
	}
}

func TestFailedDecodeResponsesNeverPass(t *testing.T) {
	if answer := readProduceResponse(nil, produceTarget{"t", 0})[0]; answer.err == nil {
		t.Error("an empty answer to a produce is no acknowledgement")
	}
}
