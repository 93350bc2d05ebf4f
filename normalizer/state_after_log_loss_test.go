package normalizer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
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

// agentRecord returns a raw record about one of many agents.
func agentRecord(random *rand.Rand) kafka.Record {
	types := []event.Type{event.AgentLogin, event.AgentLogout, event.AgentBreakStart}
	return eventRecord(types[random.IntN(len(types))], fmt.Sprintf(`{"agent_id":"%d"}`, random.IntN(40)))
}

// checkAgents compares cc.state with an independent fold of cc.evt: of the events that it
// had and lost, then of those that it has.
func checkAgents(t *testing.T, k *kafkatest.Log, lost []kafka.Record) {
	t.Helper()
	for _, wrong := range checkAgentStates(t, k, lost) {
		t.Error(wrong)
	}
}

// checkAgentStates is checkAgents without the facts of the messages, which it returns if
// they are wrong.
func checkAgentStates(t *testing.T, k *kafkatest.Log, lost []kafka.Record) (wrong []string) {
	t.Helper()
	events := slices.Concat(lost, k.All(event.TopicEvents, 0))
	byID := func(a, b kafka.Record) int { return bytes.Compare(a.Value[:40], b.Value[:40]) }
	slices.SortStableFunc(events, byID)
	var want AgentFold

	for _, r := range events {
		if err := want.Include(r.Value); err != nil {
			t.Fatal(err)
		}
	}

	var got AgentRecords
	for _, r := range k.All(event.TopicState, 0) {
		if err := got.Include(r.Key, r.Value); err != nil {
			t.Fatal(err)
		}
	}

	if got.String() != want.String() {
		t.Errorf("cc.state has\n%s\nthe fold of cc.evt is\n%s", got.String(), want.String())
	}

	return want.Wrong()
}

// cc.evt loses its end, or is another topic, while a normalizer runs: the state goes on
// as the fold of what is written there.
func TestTheStateFollowsALogThatWasCutUnderIt(t *testing.T) {
	const before, left = 200, 120

	cut := func(k *kafkatest.Log) { k.Truncate(event.TopicEvents, 0, left) }
	recreate := func(k *kafkatest.Log) { k.Recreate(event.TopicEvents) }
	for name, c := range map[string]struct {
		lose  func(*kafkatest.Log)
		kind  kafka.GapKind
		after int // events of one batch
	}{
		"cut, one event after it":                         {cut, kafka.GapTruncated, 1},
		"cut, and the next batch ends before the old end": {cut, kafka.GapTruncated, 50},
		"cut, and the next batch ends at the old end":     {cut, kafka.GapTruncated, before - left},
		"cut, and the next batch passes the old end":      {cut, kafka.GapTruncated, 150},
		"made again": {recreate, kafka.GapRecreated, 30},
		"made again, and the next batch passes the old end": {recreate, kafka.GapRecreated, 300},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, random := newFakeKafka(1), rand.New(rand.NewPCG(1, 2))
				k.Random = false
				n := newTestNormalizer(t, k, acmeOnly, event.TopicRaw)
				stop := start(n)

				for range before {
					k.Append(agentRecord(random))
				}

				time.Sleep(time.Second)
				lost := k.All(event.TopicEvents, 0)
				checkAgents(t, k, nil)

				c.lose(k)
				var raw []kafka.Record
				for range c.after {
					raw = append(raw, agentRecord(random))
				}

				k.Append(raw...)
				time.Sleep(time.Second)
				checkAgents(t, k, lost)

				if got := testutil.ToFloat64(
					n.metrics.restarts.WithLabelValues(event.TopicEvents, string(c.kind))); got != 1 {
					t.Errorf("%v %s logs are counted", got, c.kind)
				}

				for range 100 {
					k.Append(agentRecord(random))
					time.Sleep(10 * time.Millisecond)
				}

				time.Sleep(time.Second)
				checkAgents(t, k, lost)
				stop()
				runUntilIdle(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
				checkAgents(t, k, lost)
			})
		})
	}
}

// The normalizer ends before it has written the state after a cut: the next one finds a
// log that is longer than the state's position, but is not the log of the position.
func TestATakeoverFollowsALogThatWasCutAndHasGrownAgain(t *testing.T) {
	for name, lose := range map[string]func(*kafkatest.Log){
		"cut":        func(k *kafkatest.Log) { k.Truncate(event.TopicEvents, 0, 120) },
		"made again": func(k *kafkatest.Log) { k.Recreate(event.TopicEvents) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, random, stateAway := newFakeKafka(1), rand.New(rand.NewPCG(1, 2)), new(atomic.Bool)
				k.OnProduce = func(records []kafka.Record) (int, error) {
					if records[0].Topic == event.TopicState && stateAway.Load() {
						return 0, errAway
					}
					return len(records), nil
				}

				stop := start(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
				for range 200 {
					k.Append(agentRecord(random))
				}

				time.Sleep(time.Second)
				lost := k.All(event.TopicEvents, 0)
				lose(k)
				stateAway.Store(true)

				for range 300 {
					k.Append(agentRecord(random))
				}

				time.Sleep(time.Second)
				stop()
				stateAway.Store(false)

				runUntilIdle(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
				checkAgents(t, k, lost)
			})
		})
	}
}

// cc.state loses its end while a batch is in flight, which becomes the end: nothing in the
// entries tells that those of the batches between are missing.
func TestAHoleInTheStateTopicIsRepaired(t *testing.T) {
	const before, lostBatches, agents = 300, 1200, 3000
	for name, batches := range map[string]int{
		"the normalizer ends before it learns of the loss": 0,
		"it ends after the first batch of its repair":      1,
		"it ends after it has repaired the loss":           1000,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, random := newFakeKafka(1), rand.New(rand.NewPCG(1, 2))
				var armed, away atomic.Bool

				var left atomic.Int32
				cutAt := int64(0)
				k.OnProduce = func(records []kafka.Record) (int, error) {
					switch {
					case records[0].Topic != event.TopicState:
					case armed.CompareAndSwap(true, false): // the batch in flight
						k.Truncate(event.TopicState, 0, cutAt)
						away.Store(batches == 0)
						if batches == 0 {
							return len(records), errAway
						}
					case away.Load():
						return 0, errAway
					case left.Load() > 0:
						away.Store(left.Add(-1) == 0)
					}

					return len(records), nil
				}

				add := func(n, agents int) {
					for range n {
						k.Append(eventRecord(event.AgentLogin,
							fmt.Sprintf(`{"agent_id":"%0200d"}`, random.IntN(agents))))
					}
					time.Sleep(5 * time.Second)
				}

				stop := start(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
				add(before, agents)
				cutAt = int64(len(k.All(event.TopicState, 0)))
				add(lostBatches, agents)
				checkAgents(t, k, nil)

				left.Store(int32(batches))
				armed.Store(true)
				add(20, 10)
				stop()
				away.Store(false)
				left.Store(0)

				if got, want := viewOf(t, k).Size(state.Agent), foldOf(t,
					k).Size(state.Agent); (got < want) != (batches <= 1) {
					t.Fatalf("the topic has %d of %d agents before the takeover", got, want)
				}

				k.OnProduce = nil
				n := newTestNormalizer(t, k, acmeOnly, event.TopicRaw)
				runUntilIdle(n)
				checkAgents(t, k, nil)
				checkState(t, k)
				size := len(k.All(event.TopicState, 0))
				runUntilIdle(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))

				if got := len(k.All(event.TopicState, 0)); got != size {
					t.Errorf("the next takeover wrote %d records", got-size)
				}
			})
		})
	}
}

// Tombstones are lost too: what they deleted does not come back.
func TestALostTombstoneIsWrittenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		stop := start(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
		k.Append(eventRecord(event.QueueCall, `{"call_id":"c","queue_id":"q","event":"entered"}`))
		k.Append(eventRecord(event.QueueCall, `{"call_id":"c","queue_id":"q","event":"hangup"}`))
		time.Sleep(20 * time.Minute)
		withCall := int64(len(k.All(event.TopicState, 0)))
		k.Append(eventRecord(event.AgentLogin, `{"agent_id":"7"}`))
		time.Sleep(time.Second)

		if viewOf(t, k).Size(state.Call) != 0 {
			t.Fatal("the call is not forgotten")
		}

		k.Truncate(event.TopicState, 0, withCall)
		time.Sleep(2 * time.Hour)
		k.Append(eventRecord(event.AgentLogin, `{"agent_id":"7"}`))
		time.Sleep(time.Second)
		checkState(t, k)
		stop()
	})
}

// Logs are cut and made again at random, under normalizers that overlap, end and start.
// However often, cc.state is the fold of all that was ever on cc.evt, as an independent
// fold computes it.
func TestStressTheStateFollowsItsLogs(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, random := newFakeKafka(1), rand.New(rand.NewPCG(seed, 4))
				run := func() func() { return start(newTestNormalizer(t, k, acmeOnly, event.TopicRaw)) }
				stops := []func(){run(), run()}
				var lost []kafka.Record
				end := func(topic string) int64 { return int64(len(k.All(topic, 0))) }
				stateFloor := int64(0) // what cc.state has from before is not on cc.evt any more

				for range 60 {
					for range random.IntN(80) {
						k.Append(agentRecord(random))
					}

					time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
					switch random.IntN(6) {
					case 0:
						lost = append(lost,
							k.Truncate(event.TopicEvents, 0,
								end(event.TopicEvents)-random.Int64N(min(end(event.TopicEvents), 60)+1))...)
					case 1:
						lost = append(lost, k.Recreate(event.TopicEvents)...)
					case 2:
						k.Truncate(event.TopicState, 0, stateFloor+random.Int64N(end(event.TopicState)-stateFloor+1))
						continue
					case 3:
						i := random.IntN(2)
						stops[i]()
						stops[i] = run()
						continue
					default:
						continue
					}

					k.Append(agentRecord(random)) // the normalizers notice a cut when they write
					time.Sleep(5 * time.Second)
					stateFloor = end(event.TopicState)
				}

				stops[1]()
				k.Append(agentRecord(random))
				time.Sleep(time.Hour)
				stops[0]()
				checkAgentStates(t, k, lost)

				runUntilIdle(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
				checkAgentStates(t, k, lost)
			})
		})
	}
}
