package kafka

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go/protocol"
)

// produceQueue sends the batches of a producer to one broker. A small batch that comes while
// a request is on its way waits for the response, at most maxGatherWait, and all batches
// that wait leave in one request. So under load a request carries many partitions, and a
// batch that comes alone is not delayed.
type produceQueue struct {
	ctx       context.Context // of shared requests
	sending   *sync.WaitGroup // counts shared requests
	roundTrip produceRoundTrip

	mu       sync.Mutex
	waiting  []*queuedBatch
	requests int // on their way, those of large batches excepted
}

// produceRoundTrip sends a request to the broker and returns its response. After an error,
// sent reports whether the broker may have received the request.
type produceRoundTrip func(ctx context.Context, frame []byte) (response []byte, sent bool, err error)

const (
	// maxGatherWait bounds the delay by the request before, so that a partition that the
	// broker acknowledges slowly does not hold up the others.
	maxGatherWait = 3 * time.Millisecond
	// maxGatheredBatchBytes is the size in bytes up to which a batch shares a request: copying a
	// larger one costs more than a request of its own.
	maxGatheredBatchBytes = 32 << 10
	// maxGatheredBytes bounds the bytes of the batches of one shared request.
	maxGatheredBytes = 1 << 20
)

// queuedBatch is a small batch that waits for the request before it.
type queuedBatch struct {
	produceTarget
	records []byte             // the sealed batch
	answer  chan produceAnswer // of capacity 1
}

// produceTarget is the partition of a batch.
type produceTarget struct {
	topic     string // with prefix
	partition int
}

// produceAnswer is the outcome of a batch in a queue.
type produceAnswer struct {
	alone  bool // not sent: the batch may be sent in a request of its own, which is counted
	result produceResult
	sent   bool  // the broker may have received the batch
	err    error // of the connection or the context
}

// queueOf returns the queue of the broker at address.
func (p *Producer) queueOf(address string) *produceQueue {
	p.queuesMu.Lock()
	defer p.queuesMu.Unlock()

	q := p.queues[address]
	if q == nil {
		q = &produceQueue{ctx: p.ctx, sending: &p.sending, roundTrip: p.roundTripTo(address)}
		p.queues[address] = q
	}
	return q
}

// roundTripTo returns the produceRoundTrip of the broker at address.
func (p *Producer) roundTripTo(address string) produceRoundTrip {
	return func(ctx context.Context, frame []byte) (response []byte, sent bool, err error) {
		e := &exchange{key: protocol.Produce, version: produceVersion, frame: frame}
		err = p.cluster.roundTrip(ctx, address, e, requestTimeout+time.Second)
		// After the end of ctx a connection may still begin to write the frame, which e.sent does not tell yet.
		sent = e.sent.Load() || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
		return e.response, sent, err
	}
}

// send sends a sealed batch and waits for the answer.
func (q *produceQueue) send(ctx context.Context, to produceTarget, b *batch) produceAnswer {
	if b.Size() > maxGatheredBatchBytes {
		return q.sendAlone(ctx, to, b)
	}

	if !q.start() {
		w := &queuedBatch{to, b.Encoded[len(b.Encoded)-b.Size():], make(chan produceAnswer, 1)}
		a := q.await(ctx, w)
		if !a.alone {
			return a
		}
	}

	defer q.finish()

	return q.sendAlone(ctx, to, b)
}

// start counts a request, unless one is on its way already.
func (q *produceQueue) start() bool {
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.requests > 0 {
		return false
	}
	q.requests++
	return true
}

// finish counts the end of a request. If it was the last one, the batches that wait are sent.
func (q *produceQueue) finish() {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.requests--
	if q.requests == 0 {
		q.sendWaiting()
	}
}

// await queues w and returns its answer. If w has waited for maxGatherWait, await sends the
// batches that wait.
func (q *produceQueue) await(ctx context.Context, w *queuedBatch) produceAnswer {
	q.mu.Lock()
	q.waiting = append(q.waiting, w)
	if q.requests == 0 { // the request has ended meanwhile
		q.sendWaiting()
	}
	q.mu.Unlock()

	timer := time.NewTimer(maxGatherWait)
	defer timer.Stop()

	for {
		select {
		case a := <-w.answer:
			return a
		case <-timer.C:
			q.mu.Lock()
			if slices.Contains(q.waiting, w) {
				q.sendWaiting()
			}
			q.mu.Unlock()
		case <-ctx.Done():
			return q.leave(w, ctx.Err())
		}
	}
}

// leave returns the answer of w after its context has ended with err. If a request has taken
// w, its outcome is unknown.
func (q *produceQueue) leave(w *queuedBatch, err error) produceAnswer {
	q.mu.Lock()
	defer q.mu.Unlock()

	i := slices.Index(q.waiting, w)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		return produceAnswer{err: err}
	}

	select {
	case a := <-w.answer:
		return a
	default:
		return produceAnswer{sent: true, err: err}
	}
}

// sendWaiting starts one request with the batches that wait, up to maxGatheredBytes. A
// single one is sent by its own goroutine. The caller holds mu.
func (q *produceQueue) sendWaiting() {
	n, size := 0, 0
	for n < len(q.waiting) && (n == 0 || size+len(q.waiting[n].records) <= maxGatheredBytes) {
		size += len(q.waiting[n].records)
		n++
	}

	if n == 0 {
		return
	}

	group := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	q.requests++

	if n == 1 {
		group[0].answer <- produceAnswer{alone: true}
		return
	}

	// Copied here: a batch may be sent again or freed once its goroutine has left.
	frame := appendProduceRequest(make([]byte, 0, size+64*n), group)
	q.sending.Go(func() { q.sendShared(frame, group) })
}

// sendAlone sends a batch in a request of its own.
func (q *produceQueue) sendAlone(ctx context.Context, to produceTarget, b *batch) produceAnswer {
	sentAt := time.Now()
	response, sent, err := q.roundTrip(ctx, b.Encoded)
	if err != nil {
		// The connection may still be writing the frame, see exchange.
		b.frameInUse = true
		return produceAnswer{sent: sent, err: err}
	}

	result := readProduceResponse(response, to)[0]
	result.sentAt = sentAt
	return produceAnswer{result: result}
}

// sendShared sends a request with several batches and answers each.
func (q *produceQueue) sendShared(frame []byte, group []*queuedBatch) {
	defer q.finish()

	sentAt := time.Now()
	response, sent, err := q.roundTrip(q.ctx, frame)
	if err != nil {
		for _, w := range group {
			w.answer <- produceAnswer{sent: sent, err: err}
		}
		return
	}

	targets := make([]produceTarget, len(group))
	for i, w := range group {
		targets[i] = w.produceTarget
	}

	for i, result := range readProduceResponse(response, targets...) {
		result.sentAt = sentAt
		group[i].answer <- produceAnswer{result: result}
	}
}
