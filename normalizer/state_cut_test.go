package normalizer

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// agentRecord returns a raw record about one of many agents.
func agentRecord(random *rand.Rand) kafka.Record {
	types := []event.Type{event.AgentLogin, event.AgentLogout, event.AgentBreakStart}
	return eventRecord(types[random.IntN(len(types))], fmt.Sprintf(`{"agent_id":"%d"}`, random.IntN(40)))
}

// checkAgents compares cc.state with an independent fold of cc.evt: of the events that it
// had and lost, then of those that it has.
func checkAgents(t *testing.T, k *fakeKafka, lost []kafka.Record) {
	t.Helper()
	var want AgentFold
	for _, r := range append(lost, k.all(event.TopicEvents, 0)...) {
		if err := want.Add(r.Value); err != nil {
			t.Fatal(err)
		}
	}
	var got AgentRecords
	for _, r := range k.all(event.TopicState, 0) {
		if err := got.Add(r.Key, r.Value); err != nil {
			t.Fatal(err)
		}
	}
	if got.String() != want.String() {
		t.Errorf("cc.state has\n%s\nthe fold of cc.evt is\n%s", got.String(), want.String())
	}
	for _, wrong := range want.Wrong() {
		t.Error(wrong)
	}
}

// cc.evt loses its end, or is another topic, while a normalizer runs: the state goes on
// as the fold of what is written there.
func TestTheStateFollowsALogThatWasCutUnderIt(t *testing.T) {
	const before, left = 200, 120
	cut := func(k *fakeKafka) { k.truncate(event.TopicEvents, 0, left) }
	recreate := func(k *fakeKafka) { k.recreate(event.TopicEvents) }
	for name, c := range map[string]struct {
		lose  func(*fakeKafka)
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
				k.readWhole = true
				n := newTestNormalizer(t, k, acmeOnly, event.TopicRaw)
				stop := start(n)
				for range before {
					k.append(agentRecord(random))
				}
				time.Sleep(time.Second)
				lost := k.all(event.TopicEvents, 0)
				checkAgents(t, k, nil)

				c.lose(k)
				var raw []kafka.Record
				for range c.after {
					raw = append(raw, agentRecord(random))
				}
				k.append(raw...)
				time.Sleep(time.Second)
				checkAgents(t, k, lost)
				if got := testutil.ToFloat64(n.metrics.restarts.WithLabelValues(event.TopicEvents, string(c.kind))); got != 1 {
					t.Errorf("%v %s logs are counted", got, c.kind)
				}

				for range 100 {
					k.append(agentRecord(random))
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
	for name, lose := range map[string]func(*fakeKafka){
		"cut":        func(k *fakeKafka) { k.truncate(event.TopicEvents, 0, 120) },
		"made again": func(k *fakeKafka) { k.recreate(event.TopicEvents) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k, random, stateAway := newFakeKafka(1), rand.New(rand.NewPCG(1, 2)), new(atomic.Bool)
				k.onProduce = func(records []kafka.Record) (int, error) {
					if records[0].Topic == event.TopicState && stateAway.Load() {
						return 0, errAway
					}
					return len(records), nil
				}
				stop := start(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
				for range 200 {
					k.append(agentRecord(random))
				}
				time.Sleep(time.Second)
				lost := k.all(event.TopicEvents, 0)
				lose(k)
				stateAway.Store(true)
				for range 300 {
					k.append(agentRecord(random))
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
