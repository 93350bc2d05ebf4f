package kafka

import (
	"time"

	"github.com/segmentio/kafka-go/protocol"

	"trunkline/internal/kafka/wire"
)

// Limits of a fetch. A broker responds as soon as it has any records; the response may
// exceed the limits by one record batch.
const (
	fetchWait         = 500 * time.Millisecond
	fetchMinBytes     = 1
	fetchMaxBytes     = 4 << 20
	readCommitted     = 1 // isolation: only committed transactions
	consumerReplicaID = -1
)

// fetchKey identifies a partition in fetch requests.
type fetchKey struct {
	topic     TopicID
	partition int32
}

// fetchSession is a fetch session (KIP-227): the broker stores the list of partitions;
// requests and responses carry only changes.
type fetchSession struct{ id, epoch int32 }

// Epochs of requests outside of a session, which list all their partitions. If such a
// request names a session, the broker closes it.
const (
	withoutSession = -1
	newSession     = 0 // the broker may create a session
)

var noSession = fetchSession{0, withoutSession}

// closing returns the session of a request that closes s.
func (s fetchSession) closing() fetchSession { return fetchSession{s.id, withoutSession} }

// following returns the session of the request after a response that named id.
func (s fetchSession) following(id int32) fetchSession {
	// Id 0: the broker has no room for a session, so the next request lists all partitions again.
	if s.epoch < 0 || id == 0 {
		return noSession
	}
	// Epochs wrap to 1, since 0 and -1 have meanings of their own.
	if s.epoch == 1<<31-1 {
		return fetchSession{id, 1}
	}
	return fetchSession{id, s.epoch + 1}
}

// fetchPartition is one partition of a fetch request.
type fetchPartition struct {
	fetchKey
	offset      int64
	leaderEpoch int32 // of the leader
	lastEpoch   int32 // of the record before offset; or UnknownEpoch
}

// appendFetchRequest appends a complete fetch request. Consecutive partitions of a topic
// share one entry.
func appendFetchRequest(b []byte, session fetchSession, wait time.Duration, maxBytes int, partitions []fetchPartition,
	forgotten []fetchKey) []byte {
	b = appendFlexibleRequestHeader(b, protocol.Fetch, fetchVersion)
	b = wire.AppendInt32(b, consumerReplicaID)
	b = wire.AppendInt32(b, int32(wait.Milliseconds()))
	b = wire.AppendInt32(b, fetchMinBytes)
	b = wire.AppendInt32(b, fetchMaxBytes)
	b = append(b, readCommitted)
	b = wire.AppendInt32(b, session.id)
	b = wire.AppendInt32(b, session.epoch)

	topics := 0
	for i := range partitions {
		if i == 0 || partitions[i].topic != partitions[i-1].topic {
			topics++
		}
	}

	b = wire.AppendCompactArrayLen(b, topics)
	for i := 0; i < len(partitions); {
		end := i + 1
		for end < len(partitions) && partitions[end].topic == partitions[i].topic {
			end++
		}

		b = append(b, partitions[i].topic[:]...)
		b = wire.AppendCompactArrayLen(b, end-i)
		for ; i < end; i++ {
			p := &partitions[i]
			b = wire.AppendInt32(b, p.partition)
			b = wire.AppendInt32(b, p.leaderEpoch)
			b = wire.AppendInt64(b, p.offset)
			b = wire.AppendInt32(b, p.lastEpoch)
			b = wire.AppendInt64(b, -1) // log start: only set by replicas
			b = wire.AppendInt32(b, int32(maxBytes))
			b = wire.AppendNoTags(b)
		}

		b = wire.AppendNoTags(b)
	}

	b = wire.AppendCompactArrayLen(b, len(forgotten))
	for i := range forgotten {
		b = append(b, forgotten[i].topic[:]...)
		b = wire.AppendCompactArrayLen(b, 1)
		b = wire.AppendInt32(b, forgotten[i].partition)
		b = wire.AppendNoTags(b)
	}

	b = wire.AppendCompactString(b, "") // rack
	return setFrameSize(wire.AppendNoTags(b))
}

// fetchedPartition is one partition's part of a fetch response.
type fetchedPartition struct {
	err       error
	end       int64 // offset after the last readable record
	aborted   []wire.AbortedTransaction
	diverging *EpochEnd // set if the log does not have the record before the requested offset
	batches   []byte    // in the response's memory
}

// fetchHeader holds the fields of a fetch response that apply to the whole request.
type fetchHeader struct {
	err      error
	session  int32
	throttle time.Duration // how long the broker requests the client to wait
}

// readFetchResponse decodes a response and calls handlePartition for each partition in it,
// unless the whole response is an error. The argument is valid until handlePartition returns.
// If readFetchResponse returns an error, it may have called handlePartition for some
// partitions already; those are valid.
func readFetchResponse(response []byte, handlePartition func(fetchKey, *fetchedPartition)) (fetchHeader, error) {
	r := &wire.FieldReader{B: response}
	r.Tags(nil)
	header := fetchHeader{throttle: time.Duration(r.Int32()) * time.Millisecond}
	header.err = errorFromCode(r.Int16())
	header.session = r.Int32()
	if header.err != nil || r.Bad {
		return header, r.Err()
	}

	var f fetchedPartition
	diverging := func(tag uint64, value *wire.FieldReader) {
		if tag == 0 {
			f.diverging = &EpochEnd{value.Int32(), value.Int64()}
		}
	}

	for range r.CompactArrayLen(18) {
		var key fetchKey
		copy(key.topic[:], r.Take(len(key.topic)))
		for range r.CompactArrayLen(37) {
			key.partition = r.Int32()
			f = fetchedPartition{err: errorFromCode(r.Int16()), aborted: f.aborted[:0]}
			r.Int64() // high watermark
			f.end = r.Int64()
			r.Int64() // log start

			for range r.CompactArrayLen(17) {
				f.aborted = append(f.aborted, wire.AbortedTransaction{Producer: r.Int64(), FirstOffset: r.Int64()})
				r.Tags(nil)
			}

			r.Int32() // preferred replica
			f.batches = r.CompactBytes()
			r.Tags(diverging)

			if r.Bad {
				return header, wire.ErrMalformed
			}

			handlePartition(key, &f)
		}

		r.Tags(nil)
	}

	r.Tags(nil)
	return header, r.Err()
}
