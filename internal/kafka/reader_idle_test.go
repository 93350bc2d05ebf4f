package kafka

import (
	"encoding/binary"
	"io"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	kafkago "github.com/segmentio/kafka-go"

	"trunkline/internal/kafka/wire"
)

// At a time of Idle every record of the log was returned. Responses that arrive while the
// reader is busy say so of the records before them, which the reader has not returned yet.
func TestIdleIsOfWhatWasReturned(t *testing.T) {
	f := &fetcher{subs: map[fetchKey]*subscription{}, changed: map[*subscription]struct{}{}}
	s := &subscription{fetcher: f, wake: make(chan struct{}, 1), end: -1, listed: true}
	f.subs[s.fetchKey] = s
	r := &Reader{sub: s, compacted: true, meter: newMetrics(prometheus.NewRegistry(), nil).newReadMeter("t")}

	answer := func(records int64) time.Time { // a response with records, or with none
		part := &fetchedPartition{end: s.next.offset + records}
		if records > 0 {
			part.batches = numberedBatch(s.next.offset, int(records))
		}

		s.handlePart(part, &sharedBuffer{})
		f.answeredRequests++
		f.answeredAt = time.Unix(1000*int64(f.answeredRequests), 0)

		return f.answeredAt
	}

	read := func(want int) {
		t.Helper()
		records, err := r.Read(t.Context())
		if err != nil || len(records) != want {
			t.Fatalf("%d records, want %d: %v", len(records), want, err)
		}
	}

	answer(0)
	first := answer(0)
	answer(1)
	answer(0)
	second := answer(0)
	answer(1)

	if idle := s.idleSince(); !idle.Equal(first) {
		t.Errorf("two responses wait, the log was idle at %v, want %v", idle, first)
	}

	read(2)
	if !r.Idle().Equal(first) {
		t.Errorf("before the records of two responses are processed it was idle at %v, want %v", r.Idle(), first)
	}

	answer(1)
	read(1)
	if r.Idle().Before(second) {
		t.Errorf("after that it was idle at %v, want at least %v", r.Idle(), second)
	}
}

// A request that failed says nothing of the log: neither that of a lost session, which the readers
// survive, nor one that ends them.
func TestAFailedRequestIsNotIdle(t *testing.T) {
	for _, failure := range []error{kafkago.FetchSessionIDNotFound, io.ErrUnexpectedEOF} {
		f := &fetcher{ctx: t.Context(), subs: map[fetchKey]*subscription{}, changed: map[*subscription]struct{}{},
			answeredRequests: 2, answeredAt: time.Unix(1000, 0)}
		s := &subscription{fetcher: f, wake: make(chan struct{}, 1), listed: true}
		f.subs[s.fetchKey] = s

		f.distribute(getBuffer(0), failure, nil, noSession)
		if idle := s.idleSince(); !idle.Equal(time.Unix(1000, 0)) {
			t.Errorf("%v: idle at %v", failure, idle)
		}
	}
}

// The first response after a failed request that listed a partition is the first to count for it.
func TestAPartitionListedByAFailedRequestIsNotIdle(t *testing.T) {
	f := &fetcher{ctx: t.Context(), subs: map[fetchKey]*subscription{}, changed: map[*subscription]struct{}{},
		session: noSession}
	s := &subscription{fetcher: f, wake: make(chan struct{}, 1)}
	f.subs[s.fetchKey] = s

	f.buildWaitingRequest(nil)
	f.distribute(getBuffer(0), kafkago.FetchSessionIDNotFound, nil, f.session)
	if idle := s.idleSince(); !s.listed || !idle.IsZero() {
		t.Errorf("listed %v, idle at %v", s.listed, idle)
	}
}

// numberedBatch is a record batch as a broker sends it, from an offset on.
func numberedBatch(base int64, records int) []byte {
	b := wire.NewBatchBuilder(nil, nil)
	for range records {
		b.Append(&Record{Value: []byte("v")}, 1)
	}
	b.Seal(wire.ProducerState{ProducerID: -1})
	binary.BigEndian.PutUint64(b.Encoded, uint64(base))
	return b.Encoded
}
