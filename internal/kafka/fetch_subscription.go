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
	wake    chan struct{} // signals a chunk or the end of the subscription

	// The fields below are guarded by fetcher.mu.
	next        fetchPartition
	end         int64 // of the log, as of the last response
	chunks      []chunk
	buffered    int // bytes of all chunks
	err         error
	diverging   *EpochEnd
	confirmed   bool // a broker has returned a response for it
	listed      bool // it is in the waiting request
	since       int  // value of fetcher.requests when it was first listed at this offset
	idle        time.Time
	unreadable  bool        // the next offset cannot be fetched before the reader has handled the buffered data
	passingWith *passedOver // the request of the second goroutine that includes it
}

// unsubscribe removes the subscription from its fetcher, which ends after its last
// one.
func (s *subscription) unsubscribe() {
	f, all := s.fetcher, s.fetcher.fetchers
	all.mu.Lock()
	defer all.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.remove(s)
	for i := range s.chunks {
		s.chunks[i].free()
	}
	s.chunks, s.buffered = nil, 0
	if len(f.subs) > 0 {
		return
	}
	f.cancel()
	if others := slices.DeleteFunc(all.byBroker[f.address], func(o *fetcher) bool { return o == f }); len(others) > 0 {
		all.byBroker[f.address] = others
	} else {
		delete(all.byBroker, f.address)
	}
}

// fetchable reports whether more of the partition may be requested. The caller holds
// fetcher.mu.
func (s *subscription) fetchable() bool {
	return !s.unreadable && s.err == nil && s.diverging == nil && s.buffered < s.fetcher.partBuffer()
}

// taken is the result of take.
type taken struct {
	chunk
	end       int64     // of the log; -1: unknown
	idle      time.Time // see lastIdle; as of before chunk
	confirmed bool
	diverging *EpochEnd // instead of a chunk
	err       error     // instead of a chunk
}

// take returns the oldest chunk or, if there is none, the error that ended the
// subscription. It returns neither while there is nothing.
func (s *subscription) take() taken {
	f := s.fetcher
	f.mu.Lock()
	defer f.mu.Unlock()
	t := taken{end: s.end, idle: s.idle, confirmed: s.confirmed}
	if len(s.chunks) == 0 {
		t.diverging, t.err = s.diverging, s.err
		return t
	}
	t.chunk = s.chunks[0]
	s.chunks[0] = chunk{}
	if s.chunks = s.chunks[1:]; len(s.chunks) == 0 {
		s.chunks = nil
	}
	full := !s.fetchable()
	s.buffered -= len(t.batches)
	if full && !s.listed && s.fetchable() {
		f.change(s)
	}
	return t
}

// lastIdle returns when the broker last had no records beyond those buffered or taken.
// The caller holds fetcher.mu.
func (s *subscription) lastIdle() time.Time {
	if s.listed && s.fetcher.requests > s.since && s.end >= 0 && s.end <= s.next.offset {
		return s.fetcher.answered
	}
	return s.idle
}

// idleSince returns lastIdle, or zero if records are buffered.
func (s *subscription) idleSince() time.Time {
	s.fetcher.mu.Lock()
	defer s.fetcher.mu.Unlock()
	if len(s.chunks) > 0 {
		return s.idle
	}
	return s.lastIdle()
}

// fail ends the subscription with an error; buffered chunks can still be taken. The
// caller holds fetcher.mu.
func (s *subscription) fail(err error) {
	s.err = err
	s.fetcher.remove(s)
	s.signal()
}

func (s *subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// receive handles a partition's part of a response. The caller holds fetcher.mu.
func (s *subscription) receive(part *fetched, response *sharedMemory) {
	if part.err != nil {
		s.fail(part.err)
		return
	}
	if part.diverging != nil {
		s.diverging = part.diverging
		s.fetcher.remove(s)
		s.signal()
		return
	}
	if len(part.batches) == 0 {
		if s.end = part.end; s.end <= s.next.offset && !s.listed && len(s.chunks) == 0 {
			s.idle = time.Now()
		}
		if !s.confirmed {
			s.confirmed = true
			s.signal()
		}
		return
	}
	s.idle = s.lastIdle()
	s.end, s.confirmed = part.end, true
	c := newChunk(part, response)
	s.chunks = append(s.chunks, c)
	s.buffered += len(c.batches)
	next, epoch, ok := wire.NextAfter(c.batches)
	if ok && next > s.next.offset {
		s.next.offset, s.next.lastEpoch = next, epoch
	} else {
		s.unreadable = true // the reader reports the cause, and subscribes again
	}
	s.since = s.fetcher.requests + 1
	s.fetcher.changed[s] = struct{}{}
	s.signal()
}
