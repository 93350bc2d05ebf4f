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

// fetchers are the fetch groups of a cluster, by broker. Readers of different
// partitions share a group; readers of the same one are in different groups,
// since a request may name a partition once.
type fetchers struct {
	cluster *Cluster
	running sync.WaitGroup // groups whose session may be open
	mu      sync.Mutex     // before fetchGroup.mu
	groups  map[string][]*fetchGroup
}

// fetchGroup fetches many partitions from one broker. One request that waits
// for records carries all partitions that are up to date, in a fetch session;
// a partition that cannot wait for that request to return (its reader has just
// come, or has caught up with its buffer) is fetched by a second one that waits
// for a few milliseconds only, until the first one has returned and takes it
// over. The two run in a goroutine each, the second one only while it is needed.
type fetchGroup struct {
	fetchers *fetchers
	address  string
	ctx      context.Context // ends with the last subscription
	cancel   context.CancelFunc

	mu        sync.Mutex
	subs      map[fetchKey]*subscription
	changed   map[*subscription]struct{} // what the waiting request does not have, or not as it is
	forgotten []fetchKey                 // what it has and should not
	session   fetchSession
	requests  int           // how many waiting requests were answered
	answered  time.Time     // when the last one was
	listed    int           // partitions that the waiting request has
	waiting   bool          // one is on its way
	passing   bool          // the second goroutine runs
	more      chan struct{} // has an element when there is something to fetch again
}

const (
	passingWait = 10 * time.Millisecond
	// sessionAfter is the number of waiting requests that a group sends before
	// it asks for a session: brokers keep a limited number, and most groups of
	// a second reader of a partition are short.
	sessionAfter = 4
)

// Bytes that a partition may have buffered before it is left out of requests,
// and that one response may have of it: all partitions of a group share
// groupBuffer, within limits.
const (
	groupBuffer   = 64 << 20
	maxPartBuffer = 1 << 20
	minPartBuffer = 64 << 10
)

// subscription is one reader's partition in a group.
type subscription struct {
	fetchKey
	group *fetchGroup
	wake  chan struct{} // has an element when something came

	// The rest is guarded by group.mu.
	next        fetchPartition
	end         int64 // of the log, as of the last response
	chunks      []chunk
	buffered    int // bytes of chunks
	err         error
	diverging   *EpochEnd
	confirmed   bool // a broker has answered for it
	listed      bool // the waiting request has it
	since       int  // requests that had been answered when it was first listed at this offset
	idle        time.Time
	unreadable  bool        // what follows cannot be fetched before the reader has looked at what is buffered
	passingWith *passedOver // the request of the second goroutine that has it
}

// passedOver identifies a request of the second goroutine.
type passedOver struct{ _ byte }

// subscribe adds a partition to a group of the broker at address.
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

// unsubscribe takes the subscription out of its group, and ends a group that
// has no other.
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

// add reports false when the group has a reader of the partition already.
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

// remove needs g.mu.
func (g *fetchGroup) remove(s *subscription) {
	if g.subs[s.fetchKey] == s {
		delete(g.subs, s.fetchKey)
	}
	delete(g.changed, s)
	g.unlist(s)
	s.passingWith = nil
}

// unlist needs g.mu.
func (g *fetchGroup) unlist(s *subscription) {
	if s.listed {
		s.idle = s.lastIdle()
		s.listed = false
		g.listed--
		g.forgotten = append(g.forgotten, s.fetchKey)
	}
}

// partBuffer needs g.mu.
func (g *fetchGroup) partBuffer() int {
	return min(max(groupBuffer/max(len(g.subs), 1), minPartBuffer), maxPartBuffer)
}

// fetchable reports whether more of the partition may be asked for. It needs
// group.mu.
func (s *subscription) fetchable() bool {
	return !s.unreadable && s.err == nil && s.diverging == nil && s.buffered < s.group.partBuffer()
}

// taken is the result of take.
type taken struct {
	chunk
	end       int64     // of the log; -1: not known yet
	idle      time.Time // see lastIdle; of before chunk
	confirmed bool
	diverging *EpochEnd // in place of a chunk
	err       error     // in place of a chunk
}

// take returns the oldest chunk, or what ended the subscription once there is
// none. It has neither while there is nothing yet.
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

// lastIdle returns when the broker last had nothing that is not in the buffer
// or was taken from it. It needs group.mu.
func (s *subscription) lastIdle() time.Time {
	if s.listed && s.group.requests > s.since && s.end >= 0 && s.end <= s.next.offset {
		return s.group.answered
	}
	return s.idle
}

// idleSince is lastIdle, unless something is in the buffer.
func (s *subscription) idleSince() time.Time {
	s.group.mu.Lock()
	defer s.group.mu.Unlock()
	if len(s.chunks) > 0 {
		return s.idle
	}
	return s.lastIdle()
}

// change sees to it that a partition the waiting request does not have is
// fetched soon. It needs g.mu.
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

// runWaiting sends one waiting request after the other.
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

// closeWithin bounds how long the end of a group waits for the broker to close
// its session.
const closeWithin = time.Second

// closeSession closes the session at the broker. A broker has room for 1,000
// sessions by default, and lets a new one take the place of one that was unused
// for 2 minutes; where it has no room, requests list all their partitions. So a
// session that stays open costs little, and a failure is not tried again.
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

// waitingRequest builds the next waiting request: in a session, what changed;
// else all partitions. It needs g.mu.
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
			g.unlist(s) // take brings it back
			continue
		}
		s.passingWith = nil // taken over
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

// runPassing fetches what the waiting request does not have, for as long as
// there is anything.
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

// exchange sends a request and returns the response, in memory.
func (g *fetchGroup) exchange(request []byte, memory *sharedMemory, wait time.Duration) (*sharedMemory, error) {
	e := &exchange{key: protocol.Fetch, version: fetchVersion, frame: request, response: memory.bytes[:0]}
	if err := g.fetchers.cluster.roundTrip(g.ctx, g.address, e, wait+requestTimeout); err != nil {
		return takeMemory(0), err // a connection may still be filling the memory
	}
	memory.bytes = e.response
	return memory, nil
}

// distribute gives the partitions of a response to their subscriptions and
// returns the memory for the next response. passing is nil for the waiting
// request.
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

// maxThrottle bounds how long a broker is believed that it wants no requests.
const maxThrottle = 10 * time.Second

// sessionLost reports whether a broker refused a request only because it no
// longer has its session.
func sessionLost(err error) bool {
	return errors.Is(err, kafkago.FetchSessionIDNotFound) || errors.Is(err, kafkago.InvalidFetchSessionEpoch) ||
		errors.Is(err, kafkago.FetchSessionTopicIDError)
}

// fail ends the subscription with an error; what is buffered can still be
// taken. It needs group.mu.
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

// receive takes a partition's part of a response. It needs group.mu.
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
	next, epoch, ok := nextAfter(c.batches)
	if ok && next > s.next.offset {
		s.next.offset, s.next.lastEpoch = next, epoch
	} else {
		s.unreadable = true // the reader says why, and asks anew
	}
	s.since = s.group.requests + 1
	s.group.changed[s] = struct{}{}
	s.signal()
}
