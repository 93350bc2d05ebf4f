package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
)

// fakeKafka has one partition of cc.raw and of cc.state, and a normalizer between
// them: it drops repeats by their identity and folds the facts of the rest.
type fakeKafka struct {
	mu         sync.Mutex
	away       bool
	raw        []kafka.Record
	identities map[string]bool
	messages   []message // what becomes of raw records that are no repeats
	repeats    int
	partition  *state.Partition
	states     []kafka.Record
	last       event.ID
}

// message is a raw record as the scripted platform and resyncs write it.
type message struct {
	N         int         `json:"n"`
	Resync    string      `json:"resync"`
	AccountID string      `json:"account_id"`
	Timestamp float64     `json:"timestamp"`
	Facts     event.Facts `json:"facts"`
}

func newFakeKafka() *fakeKafka {
	return &fakeKafka{identities: map[string]bool{}, partition: state.NewPartition()}
}

func (k *fakeKafka) setAway(away bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.away = away
}

// Produce implements Producer. While Kafka is away it fails, now and then after
// some of the records.
func (k *fakeKafka) Produce(_ context.Context, records ...kafka.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()

	n := len(records)
	if k.away {
		n = rand.IntN(min(n, 2) + 1)
	}

	for _, r := range records[:n] {
		r := *r.Clone()
		r.Offset = int64(len(k.raw))
		k.raw = append(k.raw, r)
		k.normalize(&r)
	}

	if k.away {
		return fault.Unavailable(nil, 0, "away")
	}

	return nil
}

func (k *fakeKafka) normalize(r *kafka.Record) {
	defer func() {
		position := state.Position{Kind: state.PositionKind, EventID: k.last,
			SourcePosition: event.Position{Offset: r.Offset}.String()}
		k.states = append(k.states, kafka.Record{Key: []byte(state.PositionKey), Value: position.Append(nil)})
	}()

	if len(r.Key) == 0 {
		return // a dead letter
	}

	if identity := string(r.Header(event.HeaderIdentity)); k.identities[identity] {
		k.repeats++
		return
	} else {
		k.identities[identity] = true
	}

	var m message
	if err := json.Unmarshal(r.Value, &m); err != nil {
		panic(err)
	}

	k.messages = append(k.messages, m)
	k.last = max(k.last+1, event.ID(time.Now().UnixNano()))
	if m.Resync != "" { // as package format reads it
		m.Facts.Reason, m.Facts.TimestampMS = event.ReasonResync, int64(math.Round(m.Timestamp*1000))
	}

	k.partition.Apply(
		&state.Event{ID: k.last, Account: string(r.Key), Timestamp: time.Now().Unix(),
			Source: string(r.Header(event.HeaderSource)), Facts: m.Facts})

	k.partition.Commit(func(c state.Change) {
		record := kafka.Record{Key: []byte(c.Key.String())}
		if c.Value != nil {
			record.Value = c.Value.Append(nil)
		} else {
			record.Headers = []kafka.Header{{Key: state.HeaderEventID, Value: []byte(c.EventID.String())}}
		}

		k.states = append(k.states, record)
	})
}

func (k *fakeKafka) topic(name string) []kafka.Record {
	k.mu.Lock()
	defer k.mu.Unlock()
	if name == event.TopicState {
		return slices.Clone(k.states)
	}
	return slices.Clone(k.raw)
}

func (k *fakeKafka) Partitions(context.Context, string) (int, error) { return 1, nil }

func (k *fakeKafka) Offsets(_ context.Context, topic string, _ int) (first, next int64, err error) {
	return 0, int64(len(k.topic(topic))), nil
}

func (k *fakeKafka) ScanCompacted(_ context.Context, topic string, _ int, from int64, reset func(),
	each func(*kafka.Record)) (int64, error) {
	reset()
	all := k.topic(topic)
	for i, r := range all[from:] {
		r.Offset = from + int64(i)
		each(&r)
	}
	return int64(len(all)), nil
}

func (k *fakeKafka) read() []message {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.messages)
}

// entry returns the state of an agent or call of the account acme; "" for none.
func (k *fakeKafka) entry(kind state.Kind, id string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.partition.Find(state.Key{Account: "acme", Kind: kind, ID: id})
	if e == nil {
		return ""
	}
	return strings.TrimSpace(string(e.State) + " " + strings.Join(e.Queues, ","))
}

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
	asking      func() // called before the answer is made up
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

type fakeSession struct {
	platform *fakePlatform
	next     int
	idle     bool // it waits for events
	news     chan struct{}
	closed   chan struct{}
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

// held reports whether the sender is waiting for a resync.
func held(s *sender) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limit != nil
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

	snapshot := Snapshot{Kinds: []state.Kind{state.Agent, state.Call, state.Device},
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

func agentIs(id string, s event.State, queues ...string) *Object {
	return &Object{Account: "acme", Kind: state.Agent, ID: id, Facts: event.Facts{State: s},
		Queues: append([]string{}, queues...)}
}

func callIs(id string, s event.State, queue, agent string) *Object {
	return &Object{Account: "acme", Kind: state.Call, ID: id,
		Facts: event.Facts{State: s, QueueID: queue, AgentID: agent}}
}

func openTestStore(t *testing.T, url string) *Store {
	t.Helper()
	cfg := sqldb.Config{Path: filepath.Join(t.TempDir(), "test.db")}
	if url != "" {
		cfg = sqldb.Config{URL: url}
	}

	db, err := sqldb.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = db.Close() })
	store, err := NewStore(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}

	return store
}

// node is a process with one feed. It can be killed: nothing that it does then has
// an effect.
type testNode struct {
	*runner
	service *Service
	kafka   *mortalKafka
	cancel  context.CancelFunc
	done    chan struct{}
}

// mortalKafka is the Kafka that a process sees until it is killed.
type mortalKafka struct {
	*fakeKafka
	mu    sync.Mutex
	dead  bool
	dieAt int           // the number of calls after which the answer does not come any more; -1: none
	gate  chan struct{} // Produce waits until it is closed; nil does not block
}

// pause makes Produce wait until resume.
func (k *mortalKafka) pause() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gate = make(chan struct{})
}

func (k *mortalKafka) resume() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gate != nil {
		close(k.gate)
		k.gate = nil
	}
}

func (k *mortalKafka) Produce(ctx context.Context, records ...kafka.Record) error {
	k.mu.Lock()
	gate := k.gate
	k.mu.Unlock()

	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}

	k.mu.Lock()
	defer k.mu.Unlock()

	if k.dead {
		return fault.Unavailable(nil, 0, "killed")
	}

	err := k.fakeKafka.Produce(ctx, records...)
	if k.dieAt == 0 {
		k.dead = true
		return fault.Unavailable(nil, 0, "killed")
	}

	k.dieAt--
	return err
}

// What may become of a node.
const (
	killed = "killed" // after one of its first answers from Kafka
	narrow = "narrow" // its spool has little space
)

func startNode(t *testing.T, name, dir string, store *Store, k *fakeKafka, p *fakePlatform, cfg Config) *testNode {
	t.Helper()
	return startNodeLog(t, name, dir, store, k, p, cfg, slog.New(slog.DiscardHandler))
}

func startNodeLog(t *testing.T, name, dir string, store *Store, k *fakeKafka, p *fakePlatform, cfg Config,
	log *slog.Logger) *testNode {
	t.Helper()
	n := newTestNode(t, name, dir, store, k, p, cfg, log)
	n.start(t)
	return n
}

func newTestNode(t *testing.T, name, dir string, store *Store, k *fakeKafka, p *fakePlatform, cfg Config,
	log *slog.Logger) *testNode {
	t.Helper()
	dieAt := -1
	if cfg.Kind == killed {
		dieAt = rand.IntN(3)
	}

	settings := DefaultSettings()
	if cfg.Kind == narrow {
		settings.SpoolBytes = 16 << 10
	}

	cfg.Name, cfg.Kind = "pbx", KindFreeSWITCH
	cfg.Redundancy = max(cfg.Redundancy, 1)

	mortal := &mortalKafka{fakeKafka: k, dieAt: dieAt}
	service, err := NewService(ServiceConfig{Settings: settings, Feeds: []Config{cfg}, DataDir: dir, Node: name},
		ServiceDeps{
			Store: store, Directory: fakeDirectory{}, Platform: func(Config, Deps) (Platform, error) { return p, nil },
			Producer: mortal, Log: mortal, Metrics: prometheus.NewRegistry(), Logger: log,
		})
	if err != nil {
		t.Fatal(err)
	}

	n := &testNode{runner: service.runners[0], service: service, kafka: mortal, done: make(chan struct{})}
	if cfg.Redundancy > 1 { // a slow machine must not end a lease or the order
		n.leaseTime, n.orderTimeout = 2*time.Minute, 2*time.Minute
	}

	return n
}

func (n *testNode) start(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	go func() {
		defer close(n.done)
		_ = n.service.Run(ctx)
	}()
	t.Cleanup(n.stop)
}

func (n *testNode) stop() {
	n.cancel()
	<-n.done
}

// kill ends the process without its shutdown: its pending work has no effect any
// more, and its lease stays.
func (n *testNode) kill() {
	n.kafka.mu.Lock()
	n.kafka.dead = true
	n.kafka.mu.Unlock()
	n.stop()
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func (n *testNode) is(s State) func() bool {
	return func() bool { return n.currentStatus(time.Now()).State == s }
}

// resynced waits until a session has compared everything.
func awaitResync(t *testing.T, k *fakeKafka, want map[string]string) {
	t.Helper()
	eventually(t, fmt.Sprint("the state is ", want), func() bool {
		for key, text := range want {
			kind, id, _ := strings.Cut(key, " ")
			if k.entry(state.Kind(kind), id) != text {
				return false
			}
		}

		return true
	})
}

func TestResyncCorrectsEachDifference(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	n := startNode(t, "a", t.TempDir(), openTestStore(t, ""), k, p, Config{})
	eventually(t, "connected", n.is(StateConnected))

	for _, id := range []string{"gone", "talks", "stays", "breaks", "moves"} {
		p.happen(event.Facts{Name: event.NameAgentLogin, AgentID: id, State: event.Available, QueueID: "q1"}, id,
			agentIs(id, event.Available, "q1"))
	}

	p.happen(event.Facts{Name: event.NameQueueCallEntered, CallID: "lost", QueueID: "q1", State: event.Waiting}, "lost",
		callIs("lost", event.Waiting, "q1", ""))
	p.happen(event.Facts{Name: event.NameQueueCallAnswered, CallID: "lost", QueueID: "q1", AgentID: "talks",
		State: event.Talking}, "lost", callIs("lost", event.Talking, "q1", "talks"))
	p.happen(event.Facts{Name: event.NameCallCreated, CallID: "leg", State: event.Ringing}, "leg",
		callIs("leg", event.Ringing, "", ""))
	awaitResync(t, k,
		map[string]string{"agent talks": "talking q1", "agent moves": "available q1", "call lost": "talking",
			"call leg": "ringing"})
	eventually(t, "the first resync is over", func() bool { return !held(n.sender) })

	before := len(k.read())
	p.cut(func() { // and meanwhile
		delete(p.objects, "lost")
		delete(p.objects, "gone")
		p.objects["talks"] = *agentIs("talks", event.WrapUp, "q1")
		p.objects["breaks"] = *agentIs("breaks", event.Break, "q1")
		p.objects["moves"] = *agentIs("moves", event.Available, "q2")
		p.objects["leg"] = *callIs("leg", event.Talking, "", "")
		p.objects["new"] = *callIs("new", event.Waiting, "q1", "")
		p.objects["dev"] = Object{Account: "acme", Kind: state.Device, ID: "dev",
			Facts: event.Facts{State: event.Registered}}
	})

	awaitResync(t, k, map[string]string{
		"agent gone": "offline", "agent talks": "wrap_up q1", "agent stays": "available q1", "agent breaks": "break q1",
		"agent moves": "available q2",
		"call lost":   "ended", "call leg": "talking", "call new": "waiting", "device dev": "registered",
	})
	var names []string

	for _, m := range k.read()[before:] {
		names = append(names, string(m.Facts.Name))
		if m.Resync != KindFreeSWITCH {
			t.Errorf("%+v is no resync record", m)
		}
	}

	slices.Sort(names)
	want := []string{"agent.logout", "agent.queue_join", "agent.queue_leave", "agent.queue_leave", "agent.state",
		"agent.state",
		"call.answered", "device.registered", "queue.call_ended", "queue.call_entered"}
	if !slices.Equal(names, want) {
		t.Errorf("differences %q, want %q", names, want)
	}

	before = len(k.read())
	asked := 0
	p.cut(func() { p.asked = func() { asked++ } })
	eventually(t, "asked again", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return asked > 0 })
	p.happen(event.Facts{Name: event.NameAgentState, AgentID: "stays", State: event.Break}, "stays",
		agentIs("stays", event.Break, "q1"))
	awaitResync(t, k, map[string]string{"agent stays": "break q1"})

	for _, m := range k.read()[before:] {
		if m.Resync != "" {
			t.Errorf("a difference where there is none: %+v", m)
		}
	}
}

// An event that comes while the platform answers is about the same agent: the answer
// is older, and must not overwrite it.
func TestEventsDuringAResyncOverrideTheSnapshot(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	n := startNode(t, "a", t.TempDir(), openTestStore(t, ""), k, p, Config{})
	eventually(t, "connected", n.is(StateConnected))
	p.happen(event.Facts{Name: event.NameAgentLogin, AgentID: "1", State: event.Available}, "1",
		agentIs("1", event.Available))
	awaitResync(t, k, map[string]string{"agent 1": "available"})

	times := 0
	p.cut(func() {
		p.objects["1"] = *agentIs("1", event.WrapUp) // missed
		p.asked = func() {
			times++
			if times == 1 {
				p.happenLocked(event.Facts{Name: event.NameAgentState, AgentID: "1", State: event.Break}, "1",
					agentIs("1", event.Break))
			}
		}
	})

	eventually(t, "asked again", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return times >= 2 })
	awaitResync(t, k, map[string]string{"agent 1": "break"})
	for _, m := range k.read() {
		if m.Resync != "" {
			t.Errorf("the old answer was stored: %+v", m)
		}
	}
}

func TestARefusalIsShownAndTriedAgain(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	p.refusal = &Refusal{Err: errors.New("wrong password"), Advice: "event_socket.conf.xml"}
	store := openTestStore(t, "")
	n := startNode(t, "a", t.TempDir(), store, k, p, Config{})
	eventually(t, "refused", n.is(StateRefused))

	eventually(t, "the status is stored", func() bool {
		all, err := store.List(t.Context())
		return err == nil && len(all) == 1 && all[0].State == StateRefused && all[0].Error == "wrong password" &&
			all[0].Name == "pbx"
	})
}

// A platform that sends events and does not answer questions stays connected; its status has the reason
// why the state is not corrected.
func TestAFailedResyncIsShownUntilOneSucceeds(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	p.snapshotErr = errors.New("no answer")
	store := openTestStore(t, "")
	startNode(t, "a", t.TempDir(), store, k, p, Config{})

	shows := func(text string) func() bool {
		return func() bool {
			all, err := store.List(t.Context())
			return err == nil && len(all) == 1 && all[0].State == StateConnected && all[0].Error == text
		}
	}

	eventually(t, "the failure is shown", shows("resync failed: reading the platform snapshot: no answer"))
	p.mu.Lock()
	p.snapshotErr = nil
	p.mu.Unlock()

	eventually(t, "nothing is shown after a success", shows(""))
}

func TestALeaseGoesToAnotherNodeWithinFiveSeconds(t *testing.T) {
	url := testservice.Postgres(t)
	k, p := newFakeKafka(), newFakePlatform()
	p.plain = true
	a := startNode(t, "a", t.TempDir(), openTestStore(t, url), k, p, Config{})
	eventually(t, "a is connected", a.is(StateConnected))
	b := startNode(t, "b", t.TempDir(), openTestStore(t, url), k, p, Config{})

	store := openTestStore(t, url)
	eventually(t, "b waits", func() bool {
		all, err := store.List(t.Context())
		return err == nil && len(all) == 2 && all[0].State == StateConnected && all[1].State == StateStandby
	})

	if mine, err := store.acquireLease(t.Context(), "pbx", 0, "c", leaseTime); err != nil || mine {
		t.Errorf("a third node got the lease: %v", err)
	}

	a.stop() // gives it up
	eventually(t, "b is connected", b.is(StateConnected))
	if leaseTime+renewEvery > 5*time.Second { // and the status of a killed node is listed for leaseTime
		t.Errorf("a killed node's lease lasts %v", leaseTime+renewEvery)
	}
}

// A killed node is not listed any more when its lease is over.
func TestAKilledNodeIsNotListed(t *testing.T) {
	for _, url := range []string{"", testservice.Postgres(t)} {
		store := openTestStore(t, url)
		for _, node := range []string{"killed", "alive"} {
			if err := store.putStatus(t.Context(), Status{Name: "pbx", Node: node, State: StateConnected},
				nodeProgress{},
				nil); err != nil {
				t.Fatal(err)
			}
		}

		if _, err := store.db.ExecContext(t.Context(),
			`UPDATE feeds_status SET updated_at = updated_at - $1 WHERE node = 'killed'`,
			leaseTime.Milliseconds()); err != nil {
			t.Fatal(err)
		}

		all, err := store.List(t.Context())
		if err == nil && slices.ContainsFunc(all, func(s Status) bool { return s.Node == "killed" }) {
			t.Errorf("it has %+v", all)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// With two nodes each event is there once, whichever is killed.
func TestTwoNodesLoseNothingAndRepeatNothing(t *testing.T) {
	url := testservice.Postgres(t)
	k, p := newFakeKafka(), newFakePlatform()
	start := func(name, dir string) *testNode {
		return startNode(t, name, dir, openTestStore(t, url), k, p, Config{Redundancy: 2})
	}
	dirs := []string{t.TempDir(), t.TempDir()}
	nodes := []*testNode{start("a", dirs[0]), start("b", dirs[1])}

	const rounds, perRound = 4, 100
	for round := range rounds {
		for _, n := range nodes {
			eventually(t, "both are connected", n.is(StateConnected))
		}

		for i := range perRound {
			p.happen(event.Facts{Name: event.NameOther}, fmt.Sprint(i), nil)
			if i == perRound/2 {
				nodes[round%2].kill()
			}
		}

		nodes[round%2] = start(fmt.Sprint("again", round), dirs[round%2])
	}

	wantAll(t, k, rounds*perRound)
	eventually(t, "both have sent", func() bool { k.mu.Lock(); defer k.mu.Unlock(); return k.repeats > 0 })
}

// wantAll waits until all events of the platform have become messages, each once.
func wantAll(t *testing.T, k *fakeKafka, n int) {
	t.Helper()
	numbers := func() (all []int) {
		for _, m := range k.read() {
			if m.Resync == "" {
				all = append(all, m.N)
			}
		}
		return all
	}

	eventually(t, fmt.Sprint("all ", n, " events are there"), func() bool { return len(numbers()) >= n })
	got := numbers()
	slices.Sort(got)

	if len(got) != n || got[0] != 1 || got[n-1] != n || len(slices.Compact(slices.Clone(got))) != n {
		t.Fatalf("%d events from %d to %d, want 1 to %d", len(got), got[0], got[len(got)-1], n)
	}
}

// The process is killed at any point, Kafka is unavailable for some time, and the disk is full: each
// event that was read is stored once and in order.
func TestKillsOutagesAndAFullDiskLoseNothing(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	p.plain = true // the spool's own numbers must do
	dir, store := t.TempDir(), openTestStore(t, "")

	const total = 2000
	sent := 0
	for round := 0; sent < total; round++ {
		cfg := Config{}
		switch round % 3 {
		case 0:
			cfg.Kind = killed
		case 1:
			cfg.Kind = narrow
			k.setAway(true)
		}

		n := startNode(t, fmt.Sprint("n", round), dir, store, k, p, cfg)
		eventually(t, "connected", n.is(StateConnected))
		for range 200 {
			p.happen(event.Facts{Name: event.NameOther}, "x", nil)
			sent++
		}

		if cfg.Kind == narrow {
			eventually(t, "the spool is full", n.is(StateSpoolFull))
			k.setAway(false)
		}

		eventually(t, "all was read", p.allRead)
		if round%3 == 2 {
			n.stop()
		} else {
			n.kill()
		}
	}

	last := startNode(t, "last", dir, store, k, p, Config{})
	wantAll(t, k, total)
	previous := 0

	for _, m := range k.read() {
		if m.Resync == "" && m.N < previous {
			t.Fatalf("event %d after %d", m.N, previous)
		}
		previous = max(previous, m.N)
	}

	last.stop()
	if k.repeats == 0 {
		t.Error("nothing was sent twice: the test kills nothing")
	}

	identities := map[int]string{}
	for _, r := range k.topic(event.TopicRaw) {
		var m message
		if err := json.Unmarshal(r.Value, &m); err != nil {
			t.Fatal(err)
		}

		identity := string(r.Header(event.HeaderIdentity))
		if before := identities[m.N]; m.Resync == "" && before != "" && before != identity {
			t.Fatalf("event %d was sent as %s and as %s", m.N, before, identity)
		}

		identities[m.N] = identity
	}
}

// Damage in the spool while Kafka is unavailable: the loss is counted as a hole, and a resync follows.
func TestDamageInTheSpoolIsAHoleAndAResync(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	p.plain = true
	n := startNode(t, "a", t.TempDir(), openTestStore(t, ""), k, p, Config{})
	eventually(t, "connected", n.is(StateConnected))
	asked := 0
	questions := func() int { p.mu.Lock(); defer p.mu.Unlock(); return asked }
	p.mu.Lock()
	p.asked = func() { asked++ }
	p.mu.Unlock()

	p.happen(event.Facts{Name: event.NameAgentLogin, AgentID: "1", State: event.Available}, "1",
		agentIs("1", event.Available))
	awaitResync(t, k, map[string]string{"agent 1": "available"})
	eventually(t, "the first resync is over", func() bool { return !held(n.sender) })

	n.kafka.pause()
	before := n.spool.End()
	p.happen(event.Facts{Name: event.NameOther}, "x", nil) // in the batch that waits for Kafka
	eventually(t, "it is read", func() bool { return before.before(n.spool.End()) && p.allRead() })
	start := n.spool.End().offset

	for i := range 20 {
		p.happen(event.Facts{Name: event.NameAgentState, AgentID: "1",
			State: []event.State{event.Break, event.Available}[i%2]}, "1", agentIs("1", event.Available))
	}

	eventually(t, "all are read", p.allRead)
	end := n.spool.End().offset
	file, err := os.OpenFile(n.spool.segmentPath(n.spool.End().segment), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	if _, err := file.WriteAt(bytes.Repeat([]byte{0xee}, int(end-start)), start); err != nil {
		t.Fatal(err)
	}

	asking := questions()
	n.kafka.resume()
	p.happen(event.Facts{Name: event.NameOther}, "x", nil)

	eventually(t, "the loss is counted", func() bool {
		s := n.currentStatus(time.Now())
		return s.Dropped == 20 && s.Holes > 0
	})

	eventually(t, "a resync follows", func() bool { return questions() > asking })
}

// An event of an unknown account keeps the names that were looked up, for a retry of its dead letter.
func TestAnEventOfAnUnknownAccountKeepsItsNames(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	n := startNode(t, "a", t.TempDir(), openTestStore(t, ""), k, p, Config{})
	eventually(t, "connected", n.is(StateConnected))
	p.mu.Lock()
	p.events = append(p.events, Event{Topic: event.TopicRaw, Format: "scripted", Value: []byte(`{}`),
		Names: []string{"acme.example", "", "sup\nport", "acme.example"}})

	for s := range p.sessions {
		signal(s.news)
	}
	p.mu.Unlock()

	eventually(t, "it is stored", func() bool { return len(k.topic(event.TopicRaw)) > 0 })
	r := k.topic(event.TopicRaw)[0]
	if names := string(r.Header(event.HeaderAccountNames)); names != "acme.example\nsup port" || len(r.Key) != 0 {
		t.Errorf("key %q, names %q", r.Key, names)
	}
}
