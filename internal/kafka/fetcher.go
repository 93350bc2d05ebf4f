package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"trunkline/internal/retry"
)

// fetchers holds the fetchers of a cluster, by broker. Readers of different
// partitions share a fetcher; readers of the same partition have different ones,
// since a request may name a partition only once.
type fetchers struct {
	cluster  *Cluster
	running  sync.WaitGroup // fetchers that may have an open session
	mu       sync.Mutex     // acquired before fetcher.mu
	byBroker map[string][]*fetcher
}

// fetcher fetches many partitions from one broker. One long request (the waiting
// request) includes all partitions that are up to date, in a fetch session. A
// partition that cannot wait for its response (its reader is new, or has emptied its
// buffer) is fetched by a second request that waits only a few milliseconds, until the
// first has returned and takes the partition over. Each request has its own goroutine;
// the second one runs only when needed.
type fetcher struct {
	fetchers *fetchers
	address  string
	ctx      context.Context // canceled when the last subscription ends
	cancel   context.CancelFunc

	mu        sync.Mutex
	subs      map[fetchKey]*subscription
	changed   map[*subscription]struct{} // partitions to add or change in the waiting request
	forgotten []fetchKey                 // partitions to remove from the waiting request
	session   fetchSession
	requests  int           // number of waiting requests answered
	answered  time.Time     // time of the last of these answers
	listed    int           // number of partitions in the waiting request
	waiting   bool          // a waiting request is in progress
	passing   bool          // the second goroutine runs
	more      chan struct{} // signals that there is something to fetch again
}

const (
	passingWait = 10 * time.Millisecond
	// sessionAfter is the number of waiting requests after which a fetcher requests a
	// session: brokers keep a limited number, and most fetchers for a second reader of a
	// partition are short-lived.
	sessionAfter = 4
)

// Bytes that a partition may have buffered before requests omit it, and that one
// response may contain of it: all partitions of a fetcher share fetcherBuffer, within
// limits.
const (
	fetcherBuffer = 64 << 20
	maxPartBuffer = 1 << 20
	minPartBuffer = 64 << 10
)

// passedOver identifies a request of the second goroutine.
type passedOver struct{ _ byte }

// subscribe adds a partition to a fetcher for the broker at address.
func (all *fetchers) subscribe(address string, from fetchPartition) *subscription {
	s := &subscription{fetchKey: from.fetchKey, wake: make(chan struct{}, 1), next: from, end: -1}
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, f := range all.byBroker[address] {
		if f.add(s) {
			return s
		}
	}
	f := &fetcher{fetchers: all, address: address, subs: map[fetchKey]*subscription{}, changed: map[*subscription]struct{}{}, session: noSession, more: make(chan struct{}, 1)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	if all.byBroker == nil {
		all.byBroker = map[string][]*fetcher{}
	}
	all.byBroker[address] = append(all.byBroker[address], f)
	f.add(s)
	all.running.Go(f.runWaiting)
	return s
}

// add returns false if the fetcher already has a reader of the partition.
func (f *fetcher) add(s *subscription) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subs[s.fetchKey] != nil || f.ctx.Err() != nil {
		return false
	}
	s.fetcher = f
	f.subs[s.fetchKey] = s
	f.change(s)
	return true
}

// remove removes a subscription. The caller holds f.mu.
func (f *fetcher) remove(s *subscription) {
	if f.subs[s.fetchKey] == s {
		delete(f.subs, s.fetchKey)
	}
	delete(f.changed, s)
	f.unlist(s)
	s.passingWith = nil
}

// unlist removes a subscription from the waiting request. The caller holds f.mu.
func (f *fetcher) unlist(s *subscription) {
	if s.listed {
		s.idle = s.lastIdle()
		s.listed = false
		f.listed--
		f.forgotten = append(f.forgotten, s.fetchKey)
	}
}

// partBuffer returns the bytes that one partition may buffer. The caller holds f.mu.
func (f *fetcher) partBuffer() int {
	return min(max(fetcherBuffer/max(len(f.subs), 1), minPartBuffer), maxPartBuffer)
}

// change schedules an early fetch of a partition that the waiting request does not
// include. The caller holds f.mu.
func (f *fetcher) change(s *subscription) {
	f.changed[s] = struct{}{}
	if f.waiting && !f.passing {
		f.passing = true
		go f.runPassing()
	}
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// runWaiting sends waiting requests, one after the other.
func (f *fetcher) runWaiting() {
	memory := takeMemory(0)
	var partitions []fetchPartition
	for f.ctx.Err() == nil {
		f.mu.Lock()
		var request []byte
		request, partitions = f.waitingRequest(partitions[:0])
		if f.listed == 0 { // all buffers are full
			f.session, f.forgotten = f.session.ended(), nil
			f.mu.Unlock()
			select {
			case <-f.more:
			case <-f.ctx.Done():
			}
			continue
		}
		session := f.session
		f.waiting = true
		f.mu.Unlock()
		response, err := f.exchange(request, memory, fetchWait)
		memory = f.distribute(response, err, nil, session)
	}
	f.mu.Lock()
	session := f.session
	f.mu.Unlock()
	f.closeSession(session)
}

// closeWithin bounds the wait for the broker to close the session when a fetcher ends.
const closeWithin = time.Second

// closeSession closes the session at the broker. A broker has 1,000 sessions by
// default and replaces one that was unused for 2 minutes by a new one; without a free
// session, requests list all their partitions. So an open session costs little, and
// closeSession does not retry.
func (f *fetcher) closeSession(s fetchSession) {
	if s.id == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	c := f.fetchers.cluster
	frame := appendFetch(nil, s.ended(), 0, minPartBuffer, nil, nil)
	if err := c.roundTrip(ctx, f.address, &exchange{key: protocol.Fetch, version: fetchVersion, frame: frame}, closeWithin); err != nil {
		c.log.Debug("closing a fetch session failed", "broker", f.address, "error", err)
	}
}

// waitingRequest builds the next waiting request: the changes if there is a session,
// otherwise all partitions. The caller holds f.mu.
func (f *fetcher) waitingRequest(list []fetchPartition) ([]byte, []fetchPartition) {
	if f.session.epoch == withoutSession && f.requests >= sessionAfter {
		f.session.epoch = newSession
	}
	incremental := f.session.epoch > 0
	if !incremental {
		for _, s := range f.subs {
			f.changed[s] = struct{}{}
		}
	}
	for s := range f.changed {
		delete(f.changed, s)
		if !s.fetchable() {
			f.unlist(s) // take lists it again
			continue
		}
		s.passingWith = nil // taken over from the second goroutine
		if !s.listed {
			s.since = f.requests
			s.listed = true
			f.listed++
		}
		list = append(list, s.next)
	}
	forgotten := f.forgotten[:0]
	for _, key := range f.forgotten {
		if s := f.subs[key]; incremental && (s == nil || !s.listed) {
			forgotten = append(forgotten, key)
		}
	}
	f.forgotten = nil
	return appendFetch(nil, f.session, fetchWait, f.partBuffer(), list, forgotten), list
}

// runPassing fetches the partitions missing in the waiting request, until there are
// none.
func (f *fetcher) runPassing() {
	memory := takeMemory(0)
	var partitions []fetchPartition
	for {
		id := &passedOver{}
		f.mu.Lock()
		partitions = partitions[:0]
		for s := range f.changed {
			if !s.listed && s.fetchable() {
				s.passingWith = id
				partitions = append(partitions, s.next)
			}
		}
		if len(partitions) == 0 || f.ctx.Err() != nil {
			f.passing = false
			f.mu.Unlock()
			return
		}
		request := appendFetch(nil, noSession, passingWait, f.partBuffer(), partitions, nil)
		f.mu.Unlock()
		response, err := f.exchange(request, memory, passingWait)
		memory = f.distribute(response, err, id, noSession)
	}
}

// exchange sends a request and returns the response in memory.
func (f *fetcher) exchange(request []byte, memory *sharedMemory, wait time.Duration) (*sharedMemory, error) {
	e := &exchange{key: protocol.Fetch, version: fetchVersion, frame: request, response: memory.bytes[:0]}
	if err := f.fetchers.cluster.roundTrip(f.ctx, f.address, e, wait+requestTimeout); err != nil {
		return takeMemory(0), err // a connection may still write to memory
	}
	memory.bytes = e.response
	return memory, nil
}

// distribute passes the partitions of a response to their subscriptions and returns
// the memory for the next response. passing is nil for the waiting request.
func (f *fetcher) distribute(response *sharedMemory, err error, passing *passedOver, session fetchSession) *sharedMemory {
	f.mu.Lock()
	has := func(s *subscription) bool {
		if passing != nil {
			return s.passingWith == passing
		}
		return s.listed
	}
	var whole fetchResponse
	bytes := 0
	if err == nil {
		whole, err = readFetch(response.bytes, func(key fetchKey, part *fetched) {
			bytes += len(part.batches)
			if s := f.subs[key]; s != nil && has(s) {
				s.receive(part, response)
			}
		})
	}
	if err == nil {
		err = whole.err
	}
	if passing == nil {
		f.requests++
		f.answered = time.Now()
		f.waiting = false
		f.session = session.after(whole.session)
		if err != nil {
			f.session = session.ended()
		}
	}

	if err != nil && !sessionLost(err) && f.ctx.Err() == nil {
		for _, s := range f.subs {
			if has(s) {
				s.fail(err)
			}
		}
	}
	f.mu.Unlock()
	if whole.throttle > 0 {
		retry.Sleep(f.ctx, min(whole.throttle, maxThrottle))
	}
	if response.users.Load() > 1 || bytes == 0 && cap(response.bytes) > keptMemory {
		defer response.release()
		return takeMemory(bytes)
	}
	return response
}

// maxThrottle bounds the throttle time accepted from a broker.
const maxThrottle = 10 * time.Second

// sessionLost reports whether a broker rejected a request only because it no longer
// has the session.
func sessionLost(err error) bool {
	return errors.Is(err, kafkago.FetchSessionIDNotFound) || errors.Is(err, kafkago.InvalidFetchSessionEpoch) ||
		errors.Is(err, kafkago.FetchSessionTopicIDError)
}
