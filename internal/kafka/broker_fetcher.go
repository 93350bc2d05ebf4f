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
	sessions sync.WaitGroup // fetchers that may have an open session
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

	mu               sync.Mutex
	subs             map[fetchKey]*subscription
	changed          map[*subscription]struct{} // partitions to add or change in the waiting request
	forgottenKeys    []fetchKey                 // partitions to remove from the waiting request
	session          fetchSession
	answeredRequests int           // number of waiting requests with a response that is no error
	answeredAt       time.Time     // time of the last of these responses
	emptyResponses   int           // number of the last responses, each without records and no error
	listedCount      int           // number of partitions in the waiting request
	waiting          bool          // a waiting request is in progress
	catchingUp       bool          // the second goroutine runs
	wake             chan struct{} // signals runWaiting that a partition can be fetched again
}

const (
	// gatherInterval is the shortest time between two waiting requests, unless a response had
	// gatheredBytes: where records come faster than a round trip, each request is then of
	// several. Records that come less often do not wait.
	gatherInterval = time.Millisecond
	gatheredBytes  = 64 << 10

	// idleFetchWait is the wait of a request after idleAfter responses in a row without records:
	// each costs the broker work for every partition.
	idleFetchWait = 2 * time.Second
	idleAfter     = 4

	catchUpWait    = 10 * time.Millisecond
	maxCatchUpWait = 4 * catchUpWait
	// requestsBeforeSession is the number of waiting requests after which a fetcher requests a
	// session: brokers keep a limited number, and most fetchers for a second reader of a
	// partition are short-lived.
	requestsBeforeSession = 4
)

// Bytes that a partition may have buffered before requests omit it, and that one
// response may contain of it: all partitions of a fetcher share fetcherBuffer, within
// limits.
const (
	fetcherBuffer      = 64 << 20
	maxPartBufferBytes = 1 << 20
	minPartBufferBytes = 64 << 10
)

// catchUpID identifies a request of runCatchUp by its address: the byte makes each one different.
type catchUpID struct{ _ byte }

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

	f := &fetcher{fetchers: all, address: address, subs: map[fetchKey]*subscription{},
		changed: map[*subscription]struct{}{}, session: noSession, wake: make(chan struct{}, 1)}
	f.ctx, f.cancel = context.WithCancel(context.Background())

	if all.byBroker == nil {
		all.byBroker = map[string][]*fetcher{}
	}

	all.byBroker[address] = append(all.byBroker[address], f)
	f.add(s)
	all.sessions.Go(f.runWaiting)

	return s
}

// add returns false if the fetcher already has a reader of the partition.
func (f *fetcher) add(s *subscription) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	// A fetcher whose last subscription has ended is closing its session and takes no other.
	if f.subs[s.fetchKey] != nil || f.ctx.Err() != nil {
		return false
	}
	s.fetcher = f
	f.subs[s.fetchKey] = s
	f.scheduleFetch(s)
	return true
}

// remove removes a subscription. The caller holds f.mu.
func (f *fetcher) remove(s *subscription) {
	if f.subs[s.fetchKey] == s {
		delete(f.subs, s.fetchKey)
	}
	delete(f.changed, s)
	f.unlist(s)
	s.catchUpRequest = nil
}

// unlist removes a subscription from the waiting request. The caller holds f.mu.
func (f *fetcher) unlist(s *subscription) {
	if s.listed {
		s.idleAt = s.lastIdleAt()
		s.listed = false
		f.listedCount--
		f.forgottenKeys = append(f.forgottenKeys, s.fetchKey)
	}
}

// partBuffer returns the bytes that one partition may buffer. The caller holds f.mu.
func (f *fetcher) partBuffer() int {
	return min(max(fetcherBuffer/max(len(f.subs), 1), minPartBufferBytes), maxPartBufferBytes)
}

// scheduleFetch schedules an early fetch of a partition that the waiting request does not
// include. The caller holds f.mu.
func (f *fetcher) scheduleFetch(s *subscription) {
	f.changed[s] = struct{}{}
	if f.waiting && !f.catchingUp {
		f.catchingUp = true
		go f.runCatchUp()
	}
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// runWaiting sends waiting requests, one after the other.
func (f *fetcher) runWaiting() {
	buffer := getBuffer(0)
	var partitions []fetchPartition
	for f.ctx.Err() == nil {
		f.mu.Lock()
		var request []byte
		request, partitions = f.buildWaitingRequest(partitions[:0])

		if f.listedCount == 0 { // all buffers are full
			f.session, f.forgottenKeys = f.session.closing(), nil
			f.mu.Unlock()

			select {
			case <-f.wake:
			case <-f.ctx.Done():
			}

			continue
		}

		// Copied under the lock: the response belongs to the session and epoch with which it was asked.
		session, wait := f.session, f.wait()
		f.waiting = true
		f.mu.Unlock()

		sentAt := time.Now()
		response, err := f.send(request, buffer, wait)
		// Before distribute, which may release the buffer to chunks that readers free.
		small := len(response.bytes) < gatheredBytes
		buffer = f.distribute(response, err, nil, session)

		if small {
			retry.Sleep(f.ctx, gatherInterval-time.Since(sentAt))
		}
	}

	f.mu.Lock()
	session := f.session
	f.mu.Unlock()

	f.closeSession(session)
}

// closeTimeout bounds the wait for the broker to close the session when a fetcher ends.
const closeTimeout = time.Second

// closeSession closes the session at the broker. A broker has 1,000 sessions by
// default and replaces one that was unused for 2 minutes by a new one; without a free
// session, requests list all their partitions. So an open session costs little, and
// closeSession does not retry.
func (f *fetcher) closeSession(s fetchSession) {
	if s.id == 0 {
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()

	c := f.fetchers.cluster
	frame := appendFetchRequest(nil, s.closing(), 0, minPartBufferBytes, nil, nil)
	if err := c.roundTrip(ctx, f.address, &exchange{key: protocol.Fetch, version: fetchVersion, frame: frame},
		closeTimeout); err != nil {
		c.log.Debug("closing a fetch session failed", "broker", f.address, "error", err)
	}
}

// wait returns the time for which the broker holds the next waiting request until there are
// records. The caller holds f.mu.
func (f *fetcher) wait() time.Duration {
	if f.emptyResponses < idleAfter {
		return fetchWait
	}
	return idleFetchWait
}

// buildWaitingRequest builds the next waiting request: the changes if there is a session,
// otherwise all partitions. The caller holds f.mu.
func (f *fetcher) buildWaitingRequest(partitions []fetchPartition) ([]byte, []fetchPartition) {
	if f.session.epoch == withoutSession && f.answeredRequests >= requestsBeforeSession {
		f.session.epoch = newSession
	}

	incremental := f.session.epoch > 0
	// A request without a session says all: what changed since the last one is in it anyway.
	if !incremental {
		for _, s := range f.subs {
			f.changed[s] = struct{}{}
		}
	}

	for s := range f.changed {
		delete(f.changed, s)
		if !s.fetchable() {
			f.unlist(s) // takeChunk lists it again
			continue
		}

		s.catchUpRequest = nil // taken over from the second goroutine
		if !s.listed {
			s.listedSince = f.answeredRequests
			s.listed = true
			f.listedCount++
		}

		partitions = append(partitions, s.next)
	}

	forgotten := f.forgottenKeys[:0]
	for _, key := range f.forgottenKeys {
		s := f.subs[key]
		// A partition that was listed again meanwhile would be removed by the request that adds it.
		if incremental && (s == nil || !s.listed) {
			forgotten = append(forgotten, key)
		}
	}

	f.forgottenKeys = nil
	return appendFetchRequest(nil, f.session, f.wait(), f.partBuffer(), partitions, forgotten), partitions
}

// runCatchUp fetches the partitions that are not in the waiting request, until no such
// partition is left.
func (f *fetcher) runCatchUp() {
	buffer := getBuffer(0)
	var partitions []fetchPartition
	for wait := catchUpWait; ; wait = min(2*wait, maxCatchUpWait) {
		id := &catchUpID{}
		f.mu.Lock()
		partitions = partitions[:0]

		for s := range f.changed {
			if !s.listed && s.fetchable() {
				s.catchUpRequest = id
				partitions = append(partitions, s.next)
			}
		}

		if len(partitions) == 0 || f.ctx.Err() != nil {
			f.catchingUp = false
			f.mu.Unlock()
			return
		}

		request := appendFetchRequest(nil, noSession, wait, f.partBuffer(), partitions, nil)
		f.mu.Unlock()

		response, err := f.send(request, buffer, wait)
		buffer = f.distribute(response, err, id, noSession)
	}
}

// send sends a request and returns the response in buffer.
func (f *fetcher) send(request []byte, buffer *sharedBuffer, wait time.Duration) (*sharedBuffer, error) {
	e := &exchange{key: protocol.Fetch, version: fetchVersion, frame: request, response: buffer.bytes[:0]}
	if err := f.fetchers.cluster.roundTrip(f.ctx, f.address, e, wait+requestTimeout); err != nil {
		return getBuffer(0), err // a connection may still write to buffer
	}
	buffer.bytes = e.response
	return buffer, nil
}

// distribute passes the partitions of a response to their subscriptions and returns
// the buffer for the next response. catchUp is nil for the waiting request.
func (f *fetcher) distribute(response *sharedBuffer, err error, catchUp *catchUpID,
	session fetchSession) *sharedBuffer {
	f.mu.Lock()
	// A partition may have passed from one request to the other on the way: of two answers only one is for it.
	includes := func(s *subscription) bool {
		if catchUp != nil {
			return s.catchUpRequest == catchUp
		}
		return s.listed
	}

	var header fetchHeader
	size := 0
	if err == nil {
		header, err = readFetchResponse(response.bytes, func(key fetchKey, part *fetchedPartition) {
			size += len(part.batches)
			s := f.subs[key]
			if s != nil && includes(s) {
				s.handlePart(part, response)
			}
		})
	}
	if err == nil {
		err = header.err
	}

	if catchUp == nil {
		if err == nil {
			// A failed request says nothing of the partitions' ends, so Idle does not count it.
			f.answeredRequests++
			f.answeredAt = time.Now()
		}

		f.emptyResponses++
		if size > 0 || err != nil {
			f.emptyResponses = 0
		}

		f.waiting = false
		f.session = session.following(header.session)
		if err != nil {
			// After an error it is not known which partitions the broker has in the session: it is closed.
			f.session = session.closing()
		}
	}

	// A lost session concerns no reader: the next request lists all partitions again.
	if err != nil && !sessionLost(err) && f.ctx.Err() == nil {
		for _, s := range f.subs {
			if includes(s) {
				s.fail(err)
			}
		}
	}
	f.mu.Unlock()

	if header.throttle > 0 {
		retry.Sleep(f.ctx, min(header.throttle, maxThrottle))
	}
	// Chunks share the buffer, or it is large and the partitions have fallen silent.
	if response.users.Load() > 1 || size == 0 && cap(response.bytes) > maxIdleBufferBytes {
		defer response.release()
		return getBuffer(size)
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
