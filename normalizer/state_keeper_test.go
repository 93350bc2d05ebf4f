package normalizer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
)

// eventRecord returns a raw record of the generic format.
func eventRecord(t event.Type, data string) kafka.Record {
	r := rawEvent(0, today(), "acme")
	r.Value = fmt.Appendf(nil, `{"type":"%s","account_id":"acme","data":%s}`, t, data)
	r.Headers[0].Value = []byte("generic")
	return r
}

// randomRecord returns a record about one of a few agents and calls, or one that
// becomes a dead letter.
func randomRecord(random *rand.Rand) kafka.Record {
	agent, call := random.IntN(6), random.IntN(6)
	types := []event.Type{event.AgentLogin, event.AgentLogout, event.AgentBreakStart, event.AgentStatus,
		event.AgentStatus,
		event.AgentCallStart, event.AgentCallEnd, event.AgentQueueJoin, event.AgentQueueLeave, event.AgentTransfer,
		event.QueueCall, event.QueueCall}
	word := []string{"entered", "offered", "answered", "missed", "abandoned", "hangup"}[random.IntN(6)]
	status := []string{"available", "break", "offline", "talking", "after_call"}[random.IntN(5)]
	r := eventRecord(types[random.IntN(len(types))],
		fmt.Sprintf(`{"agent_id":"%d","call_id":"c%d","queue_id":"q","event":"%s","state":"%s","to_agent_id":"%d"}`,
			agent, call, word, status, (agent+1)%6))

	if random.IntN(10) == 0 {
		r.Value = []byte(`{"type":"AGENT_DANCE"}`)
	}
	if random.IntN(2) == 0 { // one of 600: a copy of another one, now and then
		r = withIdentity(r,
			event.Identity{Run: []string{"r", "s"}[random.IntN(2)], Number: uint64(random.IntN(300)) * 100})
	}

	return r
}

// foldOf folds the events of cc.evt as a consumer does, from the beginning.
func foldOf(t *testing.T, k *kafkatest.Log) *state.Partition {
	t.Helper()
	p, last := state.NewPartition(), event.Position{Offset: -1}
	for _, r := range k.All(event.TopicEvents, 0) {
		at, err := event.ParsePosition(string(r.Header(event.HeaderPosition)))
		if err != nil {
			t.Fatal(err)
		}

		if at.Compare(last) <= 0 {
			continue
		}

		last = at
		e, _, err := state.ParseEvent(r.Key, r.Value, r.Header(event.HeaderIdentity))
		if err != nil {
			t.Fatal(err)
		}

		p.FoldCompleted(&e)
	}

	return p
}

func factsOf(r *kafka.Record) string {
	_, facts, ok := bytes.Cut(r.Value, []byte(`,"facts":`))
	if !ok {
		return ""
	}
	return string(facts)
}

// lines returns entries and numbers as their records are.
func lines(values []state.Value) string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = v.Key().String() + " " + string(v.Append(nil)) + "\n"
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// compactedState returns what Kafka leaves of cc.state: the last record of each
// key, whatever a reader would ignore. Its position comes last.
func compactedState(t *testing.T, k *kafkatest.Log) (entries string, position *state.Position) {
	t.Helper()
	last := map[string]kafka.Record{}
	for _, r := range k.All(event.TopicState, 0) {
		last[string(r.Key)] = r
	}

	var all []string
	for key, r := range last {
		record, err := state.ParseRecord(key, r.Value, r.Header(state.HeaderEventID))
		if err != nil {
			t.Fatal(err)
		}

		switch {
		case record.Position != nil:
			position = record.Position
		case record.Value() != nil:
			all = append(all, key+" "+string(r.Value)+"\n")
		}
	}

	slices.Sort(all)
	return strings.Join(all, ""), position
}

func viewOf(t *testing.T, k *kafkatest.Log) *state.View {
	t.Helper()
	v := state.NewView()
	v.KeepNumbers = true

	for _, r := range k.All(event.TopicState, 0) {
		record, err := state.ParseRecord(string(r.Key), r.Value, r.Header(state.HeaderEventID))
		if err != nil {
			t.Fatal(err)
		}
		v.Apply(record)
	}

	return v
}

// checkState checks that cc.state, also after compaction, is the fold of cc.evt up
// to its end.
func checkState(t *testing.T, k *kafkatest.Log) {
	t.Helper()
	want := foldOf(t, k)
	got, position := compactedState(t, k)
	if expected := lines(want.Values()); got != expected {
		t.Errorf("cc.state has\n%s\nthe fold of cc.evt is\n%s", got, expected)
	}

	end := int64(len(k.All(event.TopicEvents, 0)))
	if position == nil || position.Offset != end || position.EventID != want.Last() {
		t.Errorf("position %+v, cc.evt ends at %d with %s", position, end, want.Last())
	}

	loaded := state.NewPartition()
	loaded.Load(viewOf(t, k))
	if lines(loaded.Values()) != lines(want.Values()) {
		t.Errorf("a reader of cc.state has\n%s\nthe fold of cc.evt is\n%s", lines(loaded.Values()),
			lines(want.Values()))
	}
}

// Normalizers overlap, are stopped and started at random, lose answers and
// commits, and cannot write the state for a while. Every message has the facts
// that it has without all that, however often it is written, and in the end
// cc.state is the fold of cc.evt, byte for byte.
func TestOverlapRestartsAndFailuresChangeNeitherFactsNorState(t *testing.T) {
	const total = 1200
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				quiet := newFakeKafka(1)

				k := unreliableKafka(1, seed)
				unreliable, stateAway := k.OnProduce, new(atomic.Bool)
				k.OnProduce = func(records []kafka.Record) (int, error) {
					if records[0].Topic != event.TopicState {
						return unreliable(records)
					}

					time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
					switch { // a batch is written whole or not at all
					case stateAway.Load() || rand.IntN(12) == 0:
						return 0, errAway
					case rand.IntN(12) == 0:
						return len(records), errAway
					}

					return len(records), nil
				}

				random := rand.New(rand.NewPCG(seed, 3))
				for range total {
					r := randomRecord(random)
					quiet.Append(r)
					k.Append(r)
				}

				runUntilIdle(newTestNormalizer(t, quiet, acmeOnly, event.TopicRaw))
				want := map[string]string{}
				for _, r := range quiet.All(event.TopicEvents, 0) {
					want[string(r.Value[:40])] = factsOf(&r)
				}

				checkState(t, quiet)

				run := func() func() { return start(newTestNormalizer(t, k, acmeOnly, event.TopicRaw)) }
				stops := []func(){run(), run()}
				for range 40 {
					time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
					stateAway.Store(rand.IntN(4) == 0)
					i := rand.IntN(2)
					stops[i]()
					stops[i] = run()
				}

				stateAway.Store(false)
				stops[1]()
				stopFailing(k)
				time.Sleep(time.Hour)
				stops[0]()
				seen := map[string]bool{}

				for _, r := range k.All(event.TopicEvents, 0) {
					id := string(r.Value[:40])
					if got := factsOf(&r); got != want[id] {
						t.Fatalf("message %s has the facts %s, and without failures %s", id, got, want[id])
					}
					seen[id] = true
				}

				identities := map[string]string{}
				for _, r := range k.All(event.TopicEvents, 0) {
					identity, id := string(r.Header(event.HeaderIdentity)), string(r.Value[:40])
					if identity != "" && identities[identity] != "" && identities[identity] != id {
						t.Errorf("%s is the messages %s and %s", identity, identities[identity], id)
					}
					identities[identity] = id
				}

				if len(seen) != len(want) {
					t.Errorf("%d different messages, want %d", len(seen), len(want))
				}

				checkState(t, k)
				size := len(k.All(event.TopicState, 0))
				n := newTestNormalizer(t, k, acmeOnly, event.TopicRaw)
				stop := start(n)
				time.Sleep(time.Minute)

				if got := len(k.All(event.TopicState, 0)); got != size {
					t.Errorf("a takeover with nothing to do wrote %d records", got-size)
				}

				agents := n.metrics.stateEntries.WithLabelValues(string(state.Agent))
				if got := testutil.ToFloat64(agents); int(got) != foldOf(t, k).Size(state.Agent) {
					t.Errorf("%v agents are counted", got)
				}

				stop()
				if testutil.ToFloat64(agents) != 0 {
					t.Error("entries are counted after the partition was given up")
				}
			})
		})
	}
}

// A normalizer that has lost its partition and does not know it yet writes its
// last batch late. Readers ignore it; compaction would keep it, so the owner
// writes its own again.
func TestTheOwnerCorrectsWhatALateNormalizerWrote(t *testing.T) {
	for name, busy := range map[string]bool{"while it is busy": true, "while it is idle": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newFakeKafka(1)
				k.Append(eventRecord(event.AgentLogin, `{"agent_id":"7"}`))
				k.Append(eventRecord(event.AgentLogin, `{"agent_id":"8"}`))
				runUntilIdle(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
				late := k.All(event.TopicState, 0) // both at work
				n := newTestNormalizer(t, k, acmeOnly, event.TopicRaw)
				stop := start(n)
				k.Append(eventRecord(event.AgentLogout, `{"agent_id":"7"}`))
				k.Append(eventRecord(event.AgentCallStart, `{"agent_id":"9","call_id":"c"}`))
				time.Sleep(5 * time.Second)
				k.Append(late...)
				k.Append(kafka.Record{Topic: event.TopicState, Key: []byte("acme|agent|9"), Headers: []kafka.Header{
					{Key: state.HeaderEventID, Value: []byte(viewOf(t, k).Position().EventID.String())}}})

				if got, _ := compactedState(t, k); strings.Contains(got, "offline") {
					t.Fatalf("the late batch is not the last: %s", got)
				}
				if v := viewOf(t,
					k); v.Find(state.Key{Account: "acme", Kind: state.Agent, ID: "7"}).State != event.Offline {
					t.Error("a reader takes what was written late")
				}

				if busy {
					k.Append(eventRecord(event.AgentLogin, `{"agent_id":"10"}`))
					time.Sleep(5 * time.Second)
				} else {
					time.Sleep(kafka.GroupOverlap)
				}

				checkState(t, k)
				if got := testutil.ToFloat64(n.metrics.stateRepairs); got != 2 {
					t.Errorf("%v repairs are counted", got)
				}

				size := len(k.All(event.TopicState, 0))
				time.Sleep(time.Hour)
				if got := len(k.All(event.TopicState, 0)); got != size {
					t.Errorf("%d records more", got-size)
				}

				stop()
			})
		})
	}
}

// cc.state lost its end, or was created again.
func TestALostStateTopicIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		stop := start(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
		for i := range 20 {
			k.Append(eventRecord(event.AgentLogin, fmt.Sprintf(`{"agent_id":"%d"}`, i)))
			time.Sleep(time.Second)
		}

		k.Truncate(event.TopicState, 0, 7)
		k.Append(eventRecord(event.AgentLogin, `{"agent_id":"20"}`))
		time.Sleep(time.Second)
		checkState(t, k)
		stop()
	})
}

// The first start with a state: the events that are there have no facts.
func TestAStateBeginsAtTheEndOfEventsWithoutFacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		for i := range 10 {
			k.Append(eventRecord(event.AgentLogin, fmt.Sprintf(`{"agent_id":"%d"}`, i)))
			time.Sleep(time.Second)
		}

		runUntilIdle(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
		k.Recreate(event.TopicState)
		withFacts := regexp.MustCompile(`,"facts":.*\}\}$`)
		k.Change(event.TopicEvents, 0, func(r *kafka.Record) { r.Value = withFacts.ReplaceAll(r.Value, []byte("}}")) })
		newest, err := event.MessageID(k.All(event.TopicEvents, 0)[9].Value)
		if err != nil {
			t.Fatal(err)
		}

		runUntilIdle(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
		got, position := compactedState(t, k)
		if got != "" || position == nil || position.Offset != 10 || position.EventID != newest ||
			position.Since != newest.Time().Unix() {
			t.Fatalf("it begins with %q at %+v", got, position)
		}

		since := position.Since
		k.Append(eventRecord(event.AgentBreakStart, `{"agent_id":"3"}`))
		runUntilIdle(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
		got, position = compactedState(t, k)
		if strings.Count(got, "\n") != 1 || !strings.Contains(got, `"id":"3"`) || position.Since != since ||
			position.Offset != 11 {
			t.Errorf("it goes on with %s at %+v", got, position)
		}
	})
}
