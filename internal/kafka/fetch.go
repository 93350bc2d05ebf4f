package kafka

import (
	"time"

	"github.com/segmentio/kafka-go/protocol"
)

// Limits of a fetch. A broker responds as soon as it has any records; the response may
// exceed the limits by one record batch.
const (
	fetchWait     = 500 * time.Millisecond
	fetchMinBytes = 1
	fetchMaxBytes = 4 << 20
	readCommitted = 1 // isolation: only committed transactions
	notReplica    = -1
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

// ended returns the session of a request that closes s.
func (s fetchSession) ended() fetchSession { return fetchSession{s.id, withoutSession} }

// after returns the session of the request after a response that named id.
func (s fetchSession) after(id int32) fetchSession {
	if s.epoch < 0 || id == 0 {
		return noSession
	}
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

// appendFetch appends a complete fetch request. Consecutive partitions of a topic
// share one entry.
func appendFetch(b []byte, session fetchSession, wait time.Duration, maxBytes int, partitions []fetchPartition, forgotten []fetchKey) []byte {
	b = appendFlexibleHead(b, protocol.Fetch, fetchVersion)
	b = appendInt32(b, notReplica)
	b = appendInt32(b, int32(wait.Milliseconds()))
	b = appendInt32(b, fetchMinBytes)
	b = appendInt32(b, fetchMaxBytes)
	b = append(b, readCommitted)
	b = appendInt32(b, session.id)
	b = appendInt32(b, session.epoch)

	topics := 0
	for i := range partitions {
		if i == 0 || partitions[i].topic != partitions[i-1].topic {
			topics++
		}
	}
	b = appendCompactArray(b, topics)
	for i := 0; i < len(partitions); {
		end := i + 1
		for end < len(partitions) && partitions[end].topic == partitions[i].topic {
			end++
		}
		b = append(b, partitions[i].topic[:]...)
		b = appendCompactArray(b, end-i)
		for ; i < end; i++ {
			p := &partitions[i]
			b = appendInt32(b, p.partition)
			b = appendInt32(b, p.leaderEpoch)
			b = appendInt64(b, p.offset)
			b = appendInt32(b, p.lastEpoch)
			b = appendInt64(b, -1) // log start: only set by replicas
			b = appendInt32(b, int32(maxBytes))
			b = appendNoTags(b)
		}
		b = appendNoTags(b)
	}

	b = appendCompactArray(b, len(forgotten))
	for i := range forgotten {
		b = append(b, forgotten[i].topic[:]...)
		b = appendCompactArray(b, 1)
		b = appendInt32(b, forgotten[i].partition)
		b = appendNoTags(b)
	}
	b = appendCompactString(b, "") // rack
	return endFrame(appendNoTags(b))
}

// fetched is one partition's part of a fetch response.
type fetched struct {
	err       error
	end       int64 // offset after the last readable record
	aborted   []abortedTxn
	diverging *EpochEnd // set if the log does not have the record before the requested offset
	batches   []byte    // in the response's memory
}

// fetchResponse holds the fields of a fetch response that apply to the whole request.
type fetchResponse struct {
	err      error
	session  int32
	throttle time.Duration // how long the broker requests the client to wait
}

// readFetch decodes a response and calls partition for each partition in it, unless
// the whole response is an error. The argument is valid until partition returns. If
// readFetch returns an error, it may have called partition for some partitions
// already; those are valid.
func readFetch(response []byte, partition func(fetchKey, *fetched)) (fetchResponse, error) {
	r := &wireReader{b: response}
	r.tags(nil)
	whole := fetchResponse{throttle: time.Duration(r.int32()) * time.Millisecond}
	whole.err = code(r.int16())
	whole.session = r.int32()
	if whole.err != nil || r.bad {
		return whole, r.malformed()
	}
	var f fetched
	diverging := func(tag uint64, value *wireReader) {
		if tag == 0 {
			f.diverging = &EpochEnd{value.int32(), value.int64()}
		}
	}
	for range r.compactArray(18) {
		key := fetchKey{topic: r.topicID()}
		for range r.compactArray(37) {
			key.partition = r.int32()
			f = fetched{err: code(r.int16()), aborted: f.aborted[:0]}
			r.int64() // high watermark
			f.end = r.int64()
			r.int64() // log start
			for range r.compactArray(17) {
				f.aborted = append(f.aborted, abortedTxn{r.int64(), r.int64()})
				r.tags(nil)
			}
			r.int32() // preferred replica
			f.batches = r.compactBytes()
			r.tags(diverging)
			if r.bad {
				return whole, errMalformed
			}
			partition(key, &f)
		}
		r.tags(nil)
	}
	r.tags(nil)
	return whole, r.malformed()
}
