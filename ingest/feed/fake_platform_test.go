package feed

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/retry"
)

// fakePlatform is a scripted platform. It has objects, and numbers its events.
type fakePlatform struct {
	mu      sync.Mutex
	refusal error
	// readRefusal is returned by Read.
	readRefusal error
	snapshotErr error   // returned by Snapshot
	events      []Event // all that ever were, with their identities
	sessions    map[*fakeSession]bool
	connects    int
	objects     map[string]Object
	asking      func() // called before a snapshot is made; nil: nothing
	asked       func() // called after it
	plain       bool   // events have no identities

	// A platform that keeps events delivers those from acknowledged on again.
	keeps        bool
	acknowledged int
	onAck        func(delivery uint64) error // nil: nothing
}

func newFakePlatform() *fakePlatform {
	return &fakePlatform{sessions: map[*fakeSession]bool{}, objects: map[string]Object{}}
}

// fakeSession is a connection to a fakePlatform.
type fakeSession struct {
	platform *fakePlatform
	next     int           // index of the event to read next
	idle     bool          // it waits for events
	news     chan struct{} // capacity 1: the platform has events
	closed   chan struct{} // closed when the connection is broken
	once     sync.Once
}

func (p *fakePlatform) Subscription() []string { return []string{"ALL"} }

func (p *fakePlatform) Connect(context.Context) (Session, error) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.connects++
	if p.refusal != nil {
		return nil, p.refusal
	}

	s := &fakeSession{platform: p, next: len(p.events), news: make(chan struct{}, 1), closed: make(chan struct{})}
	p.sessions[s] = true
	if p.keeps {
		s.next = p.acknowledged
		return keptSession{s}, nil
	}

	return s, nil
}

// keptSession is a session of a platform that keeps events until they are
// acknowledged.
type keptSession struct{ *fakeSession }

func (s keptSession) Acknowledge(_ context.Context, delivery uint64) error {
	p := s.platform
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.onAck != nil {
		if err := p.onAck(delivery); err != nil {
			return err
		}
	}

	p.acknowledged = max(p.acknowledged, int(delivery))
	return nil
}

// happen is an event about an object, which becomes what object says; nil: it goes.
func (p *fakePlatform) happen(facts event.Facts, id string, object *Object) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.happenLocked(facts, id, object)
}

func (p *fakePlatform) happenLocked(facts event.Facts, id string, object *Object) {
	delete(p.objects, id)
	if object != nil {
		p.objects[id] = *object
	}

	n := len(p.events) + 1
	value, err := json.Marshal(message{N: n, AccountID: "acme", Facts: facts})
	if err != nil {
		panic(err)
	}

	e := Event{Topic: event.TopicRaw, Format: "scripted", Value: value, Account: "acme", Subjects: []string{id},
		Delivery: uint64(n)}
	if !p.plain {
		e.Identity = Identity{Run: "core", Number: uint64(n)}
	}

	p.events = append(p.events, e)
	for s := range p.sessions {
		signal(s.news)
	}
}

// cut ends all connections, and changes the platform before there is another one.
func (p *fakePlatform) cut(meanwhile func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.sessions {
		s.breakConnection()
	}
	clear(p.sessions)
	meanwhile()
}

// allRead reports whether all sessions have taken all events.
func (p *fakePlatform) allRead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.sessions {
		if !s.idle || s.next < len(p.events) {
			return false
		}
	}
	return len(p.sessions) > 0
}

func (s *fakeSession) breakConnection() { s.once.Do(func() { close(s.closed) }) }

func (s *fakeSession) Read(ctx context.Context) ([]Event, error) {
	for {
		if s.platform.readRefusal != nil {
			return nil, s.platform.readRefusal
		}

		s.platform.mu.Lock()
		events := slices.Clone(s.platform.events[s.next:])
		s.next, s.idle = len(s.platform.events), len(events) == 0
		s.platform.mu.Unlock()

		if len(events) > 0 {
			return events, nil
		}

		select {
		case <-s.closed:
			return nil, errors.New("cut")
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.news:
		}
	}
}

func (s *fakeSession) Snapshot(ctx context.Context) (Snapshot, error) {
	s.platform.mu.Lock()
	err := s.platform.snapshotErr
	s.platform.mu.Unlock()

	if err != nil {
		return Snapshot{}, err
	}

	snapshot, scripted := s.platform.nextSnapshot()
	// The answer comes behind the events before it.
	for scripted && !s.platform.allRead() && retry.Sleep(ctx, time.Millisecond) {
	}

	return snapshot, nil
}

// nextSnapshot returns the answer, and whether events may have come with it.
func (p *fakePlatform) nextSnapshot() (_ Snapshot, scripted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.asking != nil {
		p.asking()
	}

	snapshot := Snapshot{CompleteKinds: []state.Kind{state.Agent, state.Call, state.Device},
		Objects: slices.Collect(maps.Values(p.objects))}
	if p.asked != nil {
		p.asked()
	}

	return snapshot, p.asking != nil || p.asked != nil
}

func (s *fakeSession) Close() error {
	s.platform.mu.Lock()
	defer s.platform.mu.Unlock()
	delete(s.platform.sessions, s)
	s.breakConnection()
	return nil
}

// agentIs is an agent in a state.
func agentIs(id string, s event.State, queues ...string) *Object {
	return &Object{Account: "acme", Kind: state.Agent, ID: id, Facts: event.Facts{State: s},
		Queues: append([]string{}, queues...)}
}

// callIs is a call in a state.
func callIs(id string, s event.State, queue, agent string) *Object {
	return &Object{Account: "acme", Kind: state.Call, ID: id,
		Facts: event.Facts{State: s, QueueID: queue, AgentID: agent}}
}

// held reports whether the sender is waiting for a resync.
func held(s *sender) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit != nil
}
