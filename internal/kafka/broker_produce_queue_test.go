package kafka

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"trunkline/internal/kafka/wire"
)

// scriptedBroker answers produce requests and records their partitions. It holds each request
// until its channel, if it has one, is closed.
type scriptedBroker struct {
	mu       sync.Mutex
	received [][]produceTarget
	holds    []chan struct{}          // by request
	refuses  map[produceTarget]int16  // error codes
	silent   map[produceTarget]bool   // partitions that the response omits
	records  map[produceTarget]string // the last batch
}

func (s *scriptedBroker) roundTrip(ctx context.Context, frame []byte) ([]byte, bool, error) {
	r := &wire.FieldReader{B: frame[4:]}
	r.Int16()
	r.Int16()
	r.Int32()
	r.Text()
	r.Int16()
	r.Int16()
	r.Int32()
	var targets []produceTarget
	s.mu.Lock()
	response := binary.BigEndian.AppendUint32(nil, 0)
	topics := 0

	for range r.ArrayLen(1) {
		topic := r.Text()
		var answers []byte
		answered := 0

		for range r.ArrayLen(1) {
			to := produceTarget{topic, int(r.Int32())}
			batch := r.Take(int(r.Int32()))
			targets = append(targets, to)
			s.records[to] = string(batch)

			if s.silent[to] {
				continue
			}

			answers = binary.BigEndian.AppendUint32(answers, uint32(to.partition))
			answers = binary.BigEndian.AppendUint16(answers, uint16(s.refuses[to]))
			answers = binary.BigEndian.AppendUint64(answers, uint64(1000+to.partition))
			answers = binary.BigEndian.AppendUint64(answers, uint64(1<<64-1))
			answers = binary.BigEndian.AppendUint64(answers, 0)
			answered++
		}

		response = append(wire.AppendString(response, topic), binary.BigEndian.AppendUint32(nil, uint32(answered))...)
		response = append(response, answers...)
		topics++
	}

	binary.BigEndian.PutUint32(response, uint32(topics))
	response = append(response, 0, 0, 0, 0)
	if r.Bad || len(r.B) != 0 {
		s.mu.Unlock()
		return nil, true, fmt.Errorf("a malformed request: % x", frame)
	}

	n := len(s.received)
	s.received = append(s.received, targets)
	var hold chan struct{}

	if n < len(s.holds) {
		hold = s.holds[n]
	}
	s.mu.Unlock()

	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, true, ctx.Err()
		}
	}

	return response, true, nil
}

// queueTest is a queue in front of a scripted broker.
type queueTest struct {
	*scriptedBroker
	*produceQueue
	answers map[produceTarget]produceAnswer
	sending sync.WaitGroup
}

func newQueueTest(t *testing.T, held int) *queueTest {
	q := &queueTest{
		scriptedBroker: &scriptedBroker{refuses: map[produceTarget]int16{}, silent: map[produceTarget]bool{},
			records: map[produceTarget]string{}},
		answers: map[produceTarget]produceAnswer{},
	}

	for range held {
		q.holds = append(q.holds, make(chan struct{}))
	}

	q.produceQueue = &produceQueue{ctx: t.Context(), sending: &q.sending, roundTrip: q.scriptedBroker.roundTrip}
	return q
}

// send sends a batch with a value in the background and waits until everything stands still.
func (q *queueTest) send(ctx context.Context, topic string, partition int, value string) {
	to := produceTarget{topic, partition}
	prefix := appendProduceHeader(nil, 1)
	prefix = wire.AppendString(prefix, topic)
	prefix = wire.AppendInt32(prefix, 1)
	prefix = wire.AppendInt32(prefix, int32(partition))
	prefix = wire.AppendInt32(prefix, 0)
	b := &batch{BatchBuilder: wire.NewBatchBuilder(nil, prefix), base: -1}
	b.Append(&Record{Value: []byte(value)}, 1)
	b.completeFrame(wire.ProducerState{ProducerID: 1})

	q.sending.Go(func() {
		a := q.produceQueue.send(ctx, to, b)
		q.scriptedBroker.mu.Lock()
		defer q.scriptedBroker.mu.Unlock()
		q.answers[to] = a
	})

	synctest.Wait()
}

func TestBatchesThatWaitShareARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, began := newQueueTest(t, 1), time.Now()
		q.send(t.Context(), "raw", 0, "first")
		for p := range 20 {
			q.send(t.Context(), []string{"evt", "raw", "state"}[p%3], 1+p, fmt.Sprint("value", p))
		}

		if len(q.received) != 1 {
			t.Fatalf("%d requests before the first was answered", len(q.received))
		}

		q.refuses[produceTarget{"raw", 2}] = int16(kafkago.NotEnoughReplicas)
		q.silent[produceTarget{"state", 3}] = true

		close(q.holds[0])
		q.sending.Wait()
		if len(q.received) != 2 || len(q.received[1]) != 20 || time.Since(began) != 0 {
			t.Fatalf("requests %v after %v", q.received, time.Since(began))
		}

		for to, a := range q.answers {
			var wanted error
			switch to {
			case produceTarget{"raw", 2}:
				wanted = kafkago.NotEnoughReplicas
			case produceTarget{"state", 3}:
				wanted = wire.ErrMalformed
			}

			if a.err != nil || a.result.err != wanted || wanted == nil && a.result.base != int64(1000+to.partition) {
				t.Errorf("%v: %+v", to, a)
			}

			if to.partition > 0 && !slices.Contains([]byte(q.records[to]), byte('v')) {
				t.Errorf("%v was sent as %q", to, q.records[to])
			}
		}
	})
}

func TestASlowAcknowledgementHoldsUpOthersForMilliseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, began := newQueueTest(t, 1), time.Now()
		q.send(t.Context(), "raw", 0, "slow")
		q.send(t.Context(), "raw", 1, "quick")
		q.send(t.Context(), "raw", 2, "quick")
		time.Sleep(maxGatherWait)
		synctest.Wait()

		if len(q.received) != 2 || len(q.answers) != 2 || time.Since(began) != maxGatherWait {
			t.Errorf("after %v: requests %v, answers %v", time.Since(began), q.received, q.answers)
		}

		close(q.holds[0])
		q.sending.Wait()
	})
}

func TestABatchThatLeavesTheQueueIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueueTest(t, 2)
		ctx, cancel := context.WithCancel(t.Context())
		q.send(t.Context(), "raw", 0, "first")
		q.send(ctx, "raw", 1, "left")
		cancel()

		synctest.Wait()
		if a := q.answers[produceTarget{"raw", 1}]; a.err == nil || a.sent {
			t.Errorf("a batch that was never sent: %+v", a)
		}

		ctx, cancel = context.WithCancel(t.Context())
		q.send(ctx, "raw", 2, "taken")
		q.send(t.Context(), "raw", 3, "goes on")
		close(q.holds[0])
		synctest.Wait() // the second request is on its way
		cancel()

		synctest.Wait()
		if a := q.answers[produceTarget{"raw", 2}]; a.err == nil || !a.sent {
			t.Errorf("a batch whose request is on its way: %+v", a)
		}

		close(q.holds[1])
		q.sending.Wait()
		if a := q.answers[produceTarget{"raw", 3}]; a.err != nil || a.result.base != 1003 {
			t.Errorf("the other batch of the request: %+v", a)
		}
	})
}

func TestALargeBatchWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueueTest(t, 1)
		q.send(t.Context(), "raw", 0, "small")
		q.send(t.Context(), "raw", 1, string(make([]byte, maxGatheredBatchBytes)))

		if len(q.received) != 2 || len(q.answers) != 1 {
			t.Errorf("requests %v", q.received)
		}

		close(q.holds[0])
		q.sending.Wait()
	})
}
