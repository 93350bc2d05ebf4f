package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"trunkline/internal/kafka/wire"
	"trunkline/internal/retry"
)

// fetchers holds the fetch groups of a cluster, by broker. Readers of different
// partitions share a group; readers of the same partition are in different groups,
// since a request may name a partition only once.
type fetchers struct {
	cluster *Cluster
	running sync.WaitGroup // groups that may have an open session
	mu      sync.Mutex     // acquired before fetchGroup.mu
	groups  map[string][]*fetchGroup
}

// fetchGroup fetches many partitions from one broker. One long request (the waiting
// request) includes all partitions that are up to date, in a fetch session. A
// partition that cannot wait for its response (its reader is new, or has emptied its
// buffer) is fetched by a second request that waits only a few milliseconds, until the
// first has returned and takes the partition over. Each request has its own goroutine;
// the second one runs only when needed.
type fetchGroup struct {
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
	// sessionAfter is the number of waiting requests after which a group requests a
	// session: brokers keep a limited number, and most groups for a second reader of a
	// partition are short-lived.
	sessionAfter = 4
)

// Bytes that a partition may have buffered before requests omit it, and that one
// response may contain of it: all partitions of a group share groupBuffer, within
// limits.
const (
	groupBuffer   = 64 << 20
	maxPartBuffer = 1 << 20
	minPartBuffer = 64 << 10
)

// subscription is the partition of one reader in a group.
type subscription struct {
	fetchKey
	group *fetchGroup
	wake  chan struct{} // signals a chunk or the end of the subscription

	// The fields below are guarded by group.mu.
	next        fetchPartition
	end         int64 // of the log, as of the last response
	chunks      []chunk
	buffered    int // bytes of all chunks
	err         error
	diverging   *EpochEnd
	confirmed   bool // a broker has returned a response for it
	listed      bool // it is in the waiting request
	since       int  // value of group.requests when it was first listed at this offset
	idle        time.Time
	unreadable  bool        // the next offset cannot be fetched before the reader has handled the buffered data
	passingWith *passedOver // the request of the second goroutine that includes it
}

// passedOver identifies a request of the second goroutine.
type passedOver struct{ _ byte }

// subscribe adds a partition to a group for the broker at address.
func (f *fetchers) subscribe(address string, from fetchPartition) *subscription {
	s := &subscription{fetchKey: from.fetchKey, wake: make(chan struct{}, 1), next: from, end: -1}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, g := range f.groups[address] {
		if g.add(s) {
			return s
		}
	}
	g := &fetchGroup{fetchers: f, address: address, subs: map[fetchKey]*subscription{}, changed: map[*subscription]struct{}{}, session: noSession, more: make(chan struct{}, 1)}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	if f.groups == nil {
		f.groups = map[string][]*fetchGroup{}
	}
	f.groups[address] = append(f.groups[address], g)
	g.add(s)
	f.running.Go(g.runWaiting)
	return s
}

// unsubscribe removes the subscription from its group, and ends the group after its
// last subscription.
func (s *subscription) unsubscribe() {
	g, f := s.group, s.group.fetchers
	f.mu.Lock()
	defer f.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.remove(s)
	for i := range s.chunks {
		s.chunks[i].free()
	}
	s.chunks, s.buffered = nil, 0
	if len(g.subs) > 0 {
		return
	}
	g.cancel()
	groups := f.groups[g.address]
	for i := range groups {
		if groups[i] == g {
			f.groups[g.address] = append(groups[:i:i], groups[i+1:]...)
			break
		}
	}
	if len(f.groups[g.address]) == 0 {
		delete(f.groups, g.address)
	}
}

// add returns false if the group already has a reader of the partition.
func (g *fetchGroup) add(s *subscription) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.subs[s.fetchKey] != nil || g.ctx.Err() != nil {
		return false
	}
	s.group = g
	g.subs[s.fetchKey] = s
	g.change(s)
	return true
}

// remove removes a subscription. The caller holds g.mu.
func (g *fetchGroup) remove(s *subscription) {
	if g.subs[s.fetchKey] == s {
		delete(g.subs, s.fetchKey)
	}
	delete(g.changed, s)
	g.unlist(s)
	s.passingWith = nil
}

// unlist removes a subscription from the waiting request. The caller holds g.mu.
func (g *fetchGroup) unlist(s *subscription) {
	if s.listed {
		s.idle = s.lastIdle()
		s.listed = false
		g.listed--
		g.forgotten = append(g.forgotten, s.fetchKey)
	}
}

// partBuffer returns the bytes that one partition may buffer. The caller holds g.mu.
func (g *fetchGroup) partBuffer() int {
	return min(max(groupBuffer/max(len(g.subs), 1), minPartBuffer), maxPartBuffer)
}

// fetchable reports whether more of the partition may be requested. The caller holds
// group.mu.
func (s *subscription) fetchable() bool {
	return !s.unreadable && s.err == nil && s.diverging == nil && s.buffered < s.group.partBuffer()
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
	g := s.group
	g.mu.Lock()
	defer g.mu.Unlock()
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
		g.change(s)
	}
	return t
}

// lastIdle returns when the broker last had no records beyond those buffered or taken.
// The caller holds group.mu.
func (s *subscription) lastIdle() time.Time {
	if s.listed && s.group.requests > s.since && s.end >= 0 && s.end <= s.next.offset {
		return s.group.answered
	}
	return s.idle
}

// idleSince returns lastIdle, or zero if records are buffered.
func (s *subscription) idleSince() time.Time {
	s.group.mu.Lock()
	defer s.group.mu.Unlock()
	if len(s.chunks) > 0 {
		return s.idle
	}
	return s.lastIdle()
}

// change schedules an early fetch of a partition that the waiting request does not
// include. The caller holds g.mu.
func (g *fetchGroup) change(s *subscription) {
	g.changed[s] = struct{}{}
	if g.waiting && !g.passing {
		g.passing = true
		go g.runPassing()
	}
	select {
	case g.more <- struct{}{}:
	default:
	}
}

// runWaiting sends waiting requests, one after the other.
func (g *fetchGroup) runWaiting() {
	memory := takeMemory(0)
	var partitions []fetchPartition
	for g.ctx.Err() == nil {
		g.mu.Lock()
		var request []byte
		request, partitions = g.waitingRequest(partitions[:0])
		if g.listed == 0 { // all buffers are full
			g.session, g.forgotten = g.session.ended(), nil
			g.mu.Unlock()
			select {
			case <-g.more:
			case <-g.ctx.Done():
			}
			continue
		}
		session := g.session
		g.waiting = true
		g.mu.Unlock()
		response, err := g.exchange(request, memory, fetchWait)
		memory = g.distribute(response, err, nil, session)
	}
	g.mu.Lock()
	session := g.session
	g.mu.Unlock()
	g.closeSession(session)
}

// closeWithin bounds the wait for the broker to close the session when a group ends.
const closeWithin = time.Second

// closeSession closes the session at the broker. A broker has 1,000 sessions by
// default and replaces one that was unused for 2 minutes by a new one; without a free
// session, requests list all their partitions. So an open session costs little, and
// closeSession does not retry.
func (g *fetchGroup) closeSession(s fetchSession) {
	if s.id == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	c := g.fetchers.cluster
	frame := appendFetch(nil, s.ended(), 0, minPartBuffer, nil, nil)
	if err := c.roundTrip(ctx, g.address, &exchange{key: protocol.Fetch, version: fetchVersion, frame: frame}, closeWithin); err != nil {
		c.log.Debug("closing a fetch session failed", "broker", g.address, "error", err)
	}
}

// waitingRequest builds the next waiting request: the changes if there is a session,
// otherwise all partitions. The caller holds g.mu.
func (g *fetchGroup) waitingRequest(list []fetchPartition) ([]byte, []fetchPartition) {
	if g.session.epoch == withoutSession && g.requests >= sessionAfter {
		g.session.epoch = newSession
	}
	incremental := g.session.epoch > 0
	if !incremental {
		for _, s := range g.subs {
			g.changed[s] = struct{}{}
		}
	}
	for s := range g.changed {
		delete(g.changed, s)
		if !s.fetchable() {
			g.unlist(s) // take lists it again
			continue
		}
		s.passingWith = nil // taken over from the second goroutine
		if !s.listed {
			s.since = g.requests
			s.listed = true
			g.listed++
		}
		list = append(list, s.next)
	}
	forgotten := g.forgotten[:0]
	for _, key := range g.forgotten {
		if s := g.subs[key]; incremental && (s == nil || !s.listed) {
			forgotten = append(forgotten, key)
		}
	}
	g.forgotten = nil
	return appendFetch(nil, g.session, fetchWait, g.partBuffer(), list, forgotten), list
}

// runPassing fetches the partitions missing in the waiting request, until there are
// none.
func (g *fetchGroup) runPassing() {
	memory := takeMemory(0)
	var partitions []fetchPartition
	for {
		id := &passedOver{}
		g.mu.Lock()
		partitions = partitions[:0]
		for s := range g.changed {
			if !s.listed && s.fetchable() {
				s.passingWith = id
				partitions = append(partitions, s.next)
			}
		}
		if len(partitions) == 0 || g.ctx.Err() != nil {
			g.passing = false
			g.mu.Unlock()
			return
		}
		request := appendFetch(nil, noSession, passingWait, g.partBuffer(), partitions, nil)
		g.mu.Unlock()
		response, err := g.exchange(request, memory, passingWait)
		memory = g.distribute(response, err, id, noSession)
	}
}

// exchange sends a request and returns the response in memory.
func (g *fetchGroup) exchange(request []byte, memory *sharedMemory, wait time.Duration) (*sharedMemory, error) {
	e := &exchange{key: protocol.Fetch, version: fetchVersion, frame: request, response: memory.bytes[:0]}
	if err := g.fetchers.cluster.roundTrip(g.ctx, g.address, e, wait+requestTimeout); err != nil {
		return takeMemory(0), err // a connection may still write to memory
	}
	memory.bytes = e.response
	return memory, nil
}

// distribute passes the partitions of a response to their subscriptions and returns
// the memory for the next response. passing is nil for the waiting request.
func (g *fetchGroup) distribute(response *sharedMemory, err error, passing *passedOver, session fetchSession) *sharedMemory {
	g.mu.Lock()
	has := func(s *subscription) bool {
		if passing != nil {
			return s.passingWith == passing
		}
		return s.listed
	}
	var whole fetchResponse
	bytes := 0
	if err == nil {
		whole, err = readFetch(response.bytes, func(key fetchKey, f *fetched) {
			bytes += len(f.batches)
			if s := g.subs[key]; s != nil && has(s) {
				s.receive(f, response)
			}
		})
	}
	if err == nil {
		err = whole.err
	}
	if passing == nil {
		g.requests++
		g.answered = time.Now()
		g.waiting = false
		g.session = session.after(whole.session)
		if err != nil {
			g.session = session.ended()
		}
	}

	if err != nil && !sessionLost(err) && g.ctx.Err() == nil {
		for _, s := range g.subs {
			if has(s) {
				s.fail(err)
			}
		}
	}
	g.mu.Unlock()
	if whole.throttle > 0 {
		retry.Sleep(g.ctx, min(whole.throttle, maxThrottle))
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

// fail ends the subscription with an error; buffered chunks can still be taken. The
// caller holds group.mu.
func (s *subscription) fail(err error) {
	s.err = err
	s.group.remove(s)
	s.signal()
}

func (s *subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// receive handles a partition's part of a response. The caller holds group.mu.
func (s *subscription) receive(f *fetched, response *sharedMemory) {
	if f.err != nil {
		s.fail(f.err)
		return
	}
	if f.diverging != nil {
		s.diverging = f.diverging
		s.group.remove(s)
		s.signal()
		return
	}
	if len(f.batches) == 0 {
		if s.end = f.end; s.end <= s.next.offset && !s.listed && len(s.chunks) == 0 {
			s.idle = time.Now()
		}
		if !s.confirmed {
			s.confirmed = true
			s.signal()
		}
		return
	}
	s.idle = s.lastIdle()
	s.end, s.confirmed = f.end, true
	c := newChunk(f, response)
	s.chunks = append(s.chunks, c)
	s.buffered += len(c.batches)
	next, epoch, ok := wire.NextAfter(c.batches)
	if ok && next > s.next.offset {
		s.next.offset, s.next.lastEpoch = next, epoch
	} else {
		s.unreadable = true // the reader reports the cause, and subscribes again
	}
	s.since = s.group.requests + 1
	s.group.changed[s] = struct{}{}
	s.signal()
}
