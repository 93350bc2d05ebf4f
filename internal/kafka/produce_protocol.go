package kafka

import (
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go/protocol"

	"trunkline/internal/kafka/wire"
)

// produceResult is what the broker answered about one batch.
type produceResult struct {
	base       int64 // offset of the first record; -1: not reported
	appendTime int64 // the broker's timestamp, Unix milliseconds; -1: the topic uses the producer's
	throttle   time.Duration
	sentAt     time.Time
	err        error
}

// appendProduceHeader begins a produce request with a number of topics.
func appendProduceHeader(b []byte, topics int) []byte {
	b = appendRequestHeader(b, protocol.Produce, produceVersion)
	b = wire.AppendInt16(b, -1) // no transaction
	b = wire.AppendInt16(b, -1) // acks: all
	b = wire.AppendInt32(b, int32(requestTimeout.Milliseconds()))
	return wire.AppendInt32(b, int32(topics))
}

// appendProduceRequest appends a complete produce request. It orders the group by topic, since
// a request names each topic once.
func appendProduceRequest(b []byte, group []*queuedBatch) []byte {
	slices.SortStableFunc(group, func(x, y *queuedBatch) int { return strings.Compare(x.topic, y.topic) })
	topics := 0
	for i, w := range group {
		if i == 0 || w.topic != group[i-1].topic {
			topics++
		}
	}

	b = appendProduceHeader(b, topics)
	for i := 0; i < len(group); {
		end := i + 1
		for end < len(group) && group[end].topic == group[i].topic {
			end++
		}

		b = wire.AppendString(b, group[i].topic)
		b = wire.AppendInt32(b, int32(end-i))
		for ; i < end; i++ {
			b = wire.AppendInt32(b, int32(group[i].partition))
			b = wire.AppendInt32(b, int32(len(group[i].records)))
			b = append(b, group[i].records...)
		}
	}

	return setFrameSize(b)
}

// readProduceResponse decodes the answers about batches. A partition without an answer has the
// error wire.ErrMalformed, as all have if the response cannot be decoded. throttle is the time
// for which the broker accepts no more requests because of a quota.
func readProduceResponse(response []byte, targets ...produceTarget) []produceResult {
	results := make([]produceResult, len(targets))
	unknown := func() []produceResult {
		for i := range results {
			results[i] = produceResult{base: -1, appendTime: -1, err: wire.ErrMalformed}
		}
		return results
	}

	// What the response does not mention has no answer.
	unknown()

	r := &wire.FieldReader{B: response}
	for range r.ArrayLen(6) {
		topic := r.Text()
		for range r.ArrayLen(30) {
			to := produceTarget{topic, int(r.Int32())}
			answer := produceResult{err: errorFromCode(r.Int16()), base: r.Int64(), appendTime: r.Int64()}
			r.Int64() // log start
			i := slices.Index(targets, to)
			if i >= 0 {
				results[i] = answer
			}
		}
	}

	throttle := time.Duration(r.Int32()) * time.Millisecond
	if r.Bad {
		return unknown()
	}

	for i := range results {
		results[i].throttle = throttle
	}

	return results
}
