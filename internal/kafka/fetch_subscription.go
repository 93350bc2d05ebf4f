package kafka

import (
	"slices"
	"time"

	"trunkline/internal/kafka/wire"
)

// subscription is the partition of one reader in a fetcher.
type subscription struct {
	fetchKey
	fetcher *fetcher
	wake    chan struct{} // signals the reader: a new chunk, or the end of the subscription

	// The fields below are guarded by fetcher.mu.
	next           fetchPartition
	end            int64 // of the log, as of the last response
	chunks         []chunk
	bufferedBytes  int // bytes of all chunks
	err            error
	diverging      *EpochEnd
	confirmed      bool // a broker has returned a response for it
	listed         bool // it is in the waiting request
	listedSince    int  // value of fetcher.answeredRequests when it was first listed at this offset
	idleAt         time.Time
	unreadable     bool       // the next offset cannot be fetched before the reader has handled the buffered data
	catchUpRequest *catchUpID // the request of the second goroutine that includes it
}

// unsubscribe removes the subscription from its fetcher, which ends after its last
// one.
func (s *subscription) unsubscribe() {
	f, all := s.fetcher, s.fetcher.fetchers
	all.mu.Lock()
	defer all.mu.Unlock()

	f.mu.Lock()
	defer f.mu.Unlock()

	// Both locks are held: between remove and the end of the fetcher no other reader may join it.
	f.remove(s)
	for i := range s.chunks {
		s.chunks[i].free()
	}

	s.chunks, s.bufferedBytes = nil, 0
	if len(f.subs) > 0 {
		return
	}

	f.cancel()
	others := slices.DeleteFunc(all.byBroker[f.address], func(o *fetcher) bool { return o == f })
	if len(others) > 0 {
		all.byBroker[f.address] = others
	} else {
		delete(all.byBroker, f.address)
	}
}

// fetchable reports whether more of the partition may be requested. The caller holds
// fetcher.mu.
func (s *subscription) fetchable() bool {
	return !s.unreadable && s.err == nil && s.diverging == nil && s.bufferedBytes < s.fetcher.partBuffer()
}

// takeResult is the result of takeChunk.
type takeResult struct {
	chunk
	end       int64 // of the log; -1: unknown
	confirmed bool
	diverging *EpochEnd // instead of a chunk
	err       error     // instead of a chunk
}

// takeChunk returns the oldest chunk or, if there is none, the error that ended the
// subscription. It returns neither while nothing is buffered.
func (s *subscription) takeChunk() takeResult {
	f := s.fetcher
	f.mu.Lock()
	defer f.mu.Unlock()

	t := takeResult{end: s.end, confirmed: s.confirmed}
	if len(s.chunks) == 0 {
		t.diverging, t.err = s.diverging, s.err
		return t
	}

	t.chunk = s.chunks[0]
	s.chunks[0] = chunk{}
	s.chunks = s.chunks[1:]
	if len(s.chunks) == 0 {
		s.chunks = nil
	}

	s.bufferedBytes -= len(t.batches)
	if !s.listed && s.fetchable() { // also if it is only the share that has grown since it was full
		f.scheduleFetch(s)
	}

	return t
}

// lastIdleAt returns when the broker last had no records beyond those buffered or taken.
// The caller holds fetcher.mu.
func (s *subscription) lastIdleAt() time.Time {
	if s.listed && s.fetcher.answeredRequests > s.listedSince && s.end >= 0 && s.end <= s.next.offset {
		return s.fetcher.answeredAt
	}
	return s.idleAt
}

// idleSince returns lastIdleAt as of before the records that are buffered.
func (s *subscription) idleSince() time.Time {
	s.fetcher.mu.Lock()
	defer s.fetcher.mu.Unlock()
	if len(s.chunks) > 0 {
		return s.chunks[0].idleAt
	}
	return s.lastIdleAt()
}

// fail ends the subscription with an error; buffered chunks can still be taken. The
// caller holds fetcher.mu.
func (s *subscription) fail(err error) {
	s.err = err
	s.fetcher.remove(s)
	s.wakeReader()
}

func (s *subscription) wakeReader() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// handlePart handles a partition's part of a response. The caller holds fetcher.mu.
func (s *subscription) handlePart(part *fetchedPartition, response *sharedBuffer) {
	if part.err != nil {
		s.fail(part.err)
		return
	}

	if part.diverging != nil {
		s.diverging = part.diverging
		s.fetcher.remove(s)
		s.wakeReader()
		return
	}

	if len(part.batches) == 0 {
		s.end = part.end
		// While it is listed, lastIdleAt derives the time from the waiting requests.
		if s.end <= s.next.offset && !s.listed && len(s.chunks) == 0 {
			s.idleAt = time.Now()
		}
		if !s.confirmed {
			s.confirmed = true
			s.wakeReader()
		}

		return
	}

	// Before s.end and s.next move: it is the time at which nothing was left, without these batches.
	s.idleAt = s.lastIdleAt()
	s.end, s.confirmed = part.end, true
	c := newChunk(part, response)
	c.idleAt = s.idleAt
	s.chunks = append(s.chunks, c)
	s.bufferedBytes += len(c.batches)
	next, epoch, ok := wire.NextAfter(c.batches)
	if ok && next > s.next.offset {
		s.next.offset, s.next.lastEpoch = next, epoch
	} else {
		s.unreadable = true // the reader reports the cause, and subscribes again
	}

	// This response counts too once distribute is done; only a later one can say that nothing follows.
	s.listedSince = s.fetcher.answeredRequests + 1
	s.fetcher.changed[s] = struct{}{}
	s.wakeReader()
}
