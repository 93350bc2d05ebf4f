package feed

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
)

// ofResync returns the names of the resync records about a call, with their times.
func (k *fakeKafka) ofResync(call string) (names []string, times []float64) {
	for _, m := range k.read() {
		if m.Resync != "" && m.Facts.CallID == call {
			names, times = append(names, string(m.Facts.Name)), append(times, m.Timestamp)
		}
	}
	return names, times
}

// mod_callcenter deletes a caller shortly before it sends the event of its end. A
// question between them must not end the call.
func TestACallMissingInOneAnswerIsNotEnded(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	n := startNode(t, "a", t.TempDir(), openTestStore(t, ""), k, p, Config{})
	eventually(t, "connected", n.is(StateConnected))
	p.happen(event.Facts{Name: event.NameQueueCallEntered, CallID: "c", QueueID: "q", State: event.Waiting}, "c",
		callIs("c", event.Waiting, "q", ""))
	p.happen(event.Facts{Name: event.NameQueueCallAnswered, CallID: "c", QueueID: "q", AgentID: "1",
		State: event.Talking}, "c", callIs("c", event.Talking, "q", "1"))
	awaitResync(t, k, map[string]string{"call c": "talking"})

	p.cut(func() {
		delete(p.objects, "c")
		questions := 0
		p.asking = func() {
			questions++
			if questions == 2 {
				p.happenLocked(event.Facts{Name: event.NameQueueCallEnded, CallID: "c", QueueID: "q", AgentID: "1",
					State: event.Ended}, "c", nil)
			}
		}
	})

	awaitResync(t, k, map[string]string{"call c": "ended"})
	if names, _ := k.ofResync("c"); len(names) != 0 {
		t.Errorf("the resync reports %q of the call", names)
	}
}

// resyncs returns the numbers of rounds of the resyncs that a log has.
func (l *testLog) resyncs() (rounds []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range regexp.MustCompile(`msg="resync done" .*rounds=(\d+)`).FindAllStringSubmatch(l.text.String(),
		-1) {
		rounds = append(rounds, m[1])
	}
	return rounds
}

type testLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *testLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// Under traffic each snapshot is older than some events. Only the objects of such events are compared
// again, until no event comes between.
func TestAResyncConvergesUnderTraffic(t *testing.T) {
	for name, test := range map[string]struct {
		agent  func(question int) string // that has an event with each question
		rounds int
	}{
		"another agent each time": {func(question int) string { return fmt.Sprint(question) }, 2},
		"one agent with four answers": {func(question int) string {
			return map[bool]string{true: "1",
				false: "x"}[question <= 4]
		}, 5},
		"one agent whose event is missed": {func(question int) string {
			return map[bool]string{true: "1",
				false: "x"}[question <= 3]
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			k, p := newFakeKafka(), newFakePlatform()
			for i := range 10 {
				p.objects[fmt.Sprint(i)] = *agentIs(fmt.Sprint(i), event.Available, "q")
			}

			questions := 0
			p.asked = func() {
				questions++
				id := test.agent(questions)
				p.happenLocked(event.Facts{Name: event.NameAgentState, AgentID: id, State: event.Break}, id,
					agentIs(id, event.Break, "q"))
			}

			log := &testLog{}
			n := startNodeLog(t, "a", t.TempDir(), openTestStore(t, ""), k, p, Config{},
				slog.New(slog.NewTextHandler(log, nil)))
			eventually(t, "the resync is done", func() bool { return len(log.resyncs()) > 0 })
			n.stop()

			if rounds := log.resyncs(); questions != test.rounds || rounds[0] != fmt.Sprint(test.rounds) {
				t.Errorf("%d questions, %v rounds; want %d", questions, rounds, test.rounds)
			}
			if got := k.entry(state.Agent, "9"); got != "available q" {
				t.Errorf("an agent without events is %q", got)
			}
			if got := k.entry(state.Agent, test.agent(1)); got != "break q" { // no event has the queue
				t.Errorf("an agent with events is %q", got)
			}

			for _, m := range k.read() {
				if m.Resync != "" && m.Facts.AgentID == test.agent(1) && m.Facts.State != "" {
					t.Errorf("an answer older than an event was stored: %+v", m)
				}
			}
		})
	}
}

// A request during the pauses of a resync compares all objects again, not only those that are open.
func TestARequestDuringAResyncComparesEverything(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	for _, id := range []string{"busy", "quiet"} {
		p.objects[id] = *agentIs(id, event.Available, "q")
	}

	questions := 0
	p.asked = func() {
		questions++
		if questions > 4 {
			return
		}

		p.happenLocked(event.Facts{Name: event.NameAgentState, AgentID: "busy", State: event.Break}, "busy",
			agentIs("busy", event.Break, "q"))
		if questions == 3 { // a change without an event, and its announcement
			p.objects["quiet"] = *agentIs("quiet", event.Available, "q", "q2")
			p.events = append(p.events, Event{Resync: true})
		}
	}

	startNode(t, "a", t.TempDir(), openTestStore(t, ""), k, p, Config{})
	awaitResync(t, k, map[string]string{"agent busy": "break q", "agent quiet": "available q,q2"})
}

// What a platform changes without an event is found although nothing requests a resync.
func TestPlatformsAreComparedPeriodically(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	p.objects["1"] = *agentIs("1", event.Available, "q")
	n := newTestNode(t, "a", t.TempDir(), openTestStore(t, ""), k, p, Config{}, slog.New(slog.DiscardHandler))
	n.resyncInterval = 10 * time.Millisecond
	n.start(t)
	awaitResync(t, k, map[string]string{"agent 1": "available q"})
	p.mu.Lock()
	p.objects["1"] = *agentIs("1", event.Break, "q2")
	p.mu.Unlock()

	awaitResync(t, k, map[string]string{"agent 1": "break q2"})
}

// A call that leaves its queue continues in the dialplan: the call has ended, but its leg exists.
func TestACallThatLeftItsQueueIsNotReopened(t *testing.T) {
	ended := &state.Entry{AccountID: "acme", Kind: state.Call, ID: "c", Source: "feed:pbx",
		Facts: event.Facts{CallID: "c", QueueID: "q", State: event.Ended}}
	leg := *callIs("c", event.Talking, "", "")
	again := *callIs("c", event.Waiting, "q", "")

	never := func(string, *state.Entry) bool { return false }
	compared := func(object Object, reason string) (names []string) {
		ended.Reason = reason
		for _, d := range compare(Snapshot{CompleteKinds: []state.Kind{state.Call}, Objects: []Object{object}},
			[]*state.Entry{ended}, "feed:pbx", nil, never).differences {
			names = append(names, string(d.facts.Name))
		}
		return names
	}

	for _, test := range []struct {
		object Object
		reason string
		want   string
	}{
		{leg, "timeout", ""},
		{again, "timeout", "queue.call_entered"},
		{leg, event.ReasonResync, "call.created call.answered"}, // a resync was wrong
	} {
		if got := strings.Join(compared(test.object, test.reason), " "); got != test.want {
			t.Errorf("%s after an end by %s: %q, want %q", test.object.Facts.State, test.reason, got, test.want)
		}
	}
}

// The time of a difference is that of the platform, if the platform reports it.
func TestDifferencesHaveThePlatformsTime(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	entered := time.Now().Add(-time.Minute).Truncate(time.Second).UnixMilli()
	call := callIs("c", event.Talking, "q", "1")
	call.Facts.TimestampMS, call.Facts.WaitMS = entered+20_000, event.MillisOf(20_000)
	p.objects["c"] = *call
	startNode(t, "a", t.TempDir(), openTestStore(t, ""), k, p, Config{})
	awaitResync(t, k, map[string]string{"call c": "talking"})
	names, times := k.ofResync("c")
	if len(names) != 2 || names[0] != "queue.call_entered" || names[1] != "queue.call_answered" ||
		times[0] != float64(entered)/1000 || times[1] != float64(entered+20_000)/1000 {
		t.Errorf("%q at %v, want the call to enter at %d and to be answered 20 s later", names, times, entered/1000)
	}

	k.mu.Lock()
	defer k.mu.Unlock()

	if e := k.partition.Find(state.Key{Account: "acme", Kind: state.Call, ID: "c"}); e.EnteredMS != entered ||
		e.AnsweredMS != entered+20_000 || e.WaitMS.Value != 20_000 {
		t.Errorf("entered %d, answered %d, waited %v; want %d, 20 s and 20 s", e.EnteredMS, e.AnsweredMS, e.WaitMS,
			entered)
	}
}

// Repeats and dead letters at the end of cc.raw do not delay the comparison.
func TestAResyncDoesNotWaitForRepeatsAndDeadLetters(t *testing.T) {
	k := newFakeKafka()
	r := kafka.Record{Topic: event.TopicRaw, Key: []byte("acme"), Value: []byte(`{"facts":{"name":"other"}}`),
		Headers: []kafka.Header{
			{Key: event.HeaderSource, Value: []byte("feed:pbx")}, {Key: event.HeaderIdentity, Value: []byte("core/1")},
		}}
	unknown := r
	unknown.Key = nil

	if err := k.Produce(t.Context(), r, r, unknown, r); err != nil {
		t.Fatal(err)
	}

	states := newStateReader(k)
	if stalled, err := states.catchUp(t.Context()); stalled || err != nil {
		t.Errorf("stalled %v, %v", stalled, err)
	}

	k.mu.Lock()
	k.raw = append(k.raw, r) // one that the normalizer has not processed
	k.mu.Unlock()

	if stalled, err := states.catchUp(t.Context()); !stalled || err != nil {
		t.Errorf("stalled %v, %v behind the end", stalled, err)
	}
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
