package kafka

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"trunkline/internal/kafka/wire"
)

// lookups batches questions into few requests: those that arrive during a request are
// sent together in the next one.
type lookups[Q comparable, A any] struct {
	// ask sends one request. Its error applies to all questions.
	ask func(ctx context.Context, questions []Q) (map[Q]answer[A], error)

	mu      sync.Mutex
	waiting map[Q]*lookup[A]
	sent    map[Q]*lookup[A] // of the request in progress
	running bool
}

type answer[A any] struct {
	value A
	err   error
}

type lookup[A any] struct {
	answer[A]
	done chan struct{}
}

// get returns the answer of a request that is sent after the call. It waits for it, or
// for the end of ctx.
func (l *lookups[Q, A]) get(ctx context.Context, question Q) (A, error) {
	l.mu.Lock()
	asked := l.next(question)
	l.mu.Unlock()
	return asked.await(ctx)
}

// join is like get, but accepts the answer of a request in progress.
func (l *lookups[Q, A]) join(ctx context.Context, question Q) (A, error) {
	l.mu.Lock()
	asked := l.sent[question]
	if asked == nil {
		asked = l.next(question)
	}
	l.mu.Unlock()
	return asked.await(ctx)
}

// next returns the look-up in the next request. The caller holds l.mu.
func (l *lookups[Q, A]) next(question Q) *lookup[A] {
	asked := l.waiting[question]
	if asked == nil {
		asked = &lookup[A]{done: make(chan struct{})}
		if l.waiting == nil {
			l.waiting = map[Q]*lookup[A]{}
		}
		l.waiting[question] = asked
	}
	if !l.running {
		l.running = true
		go l.run()
	}
	return asked
}

func (l *lookup[A]) await(ctx context.Context) (A, error) {
	select {
	case <-l.done:
		return l.value, l.err
	case <-ctx.Done():
		var none A
		return none, ctx.Err()
	}
}

// run sends requests until there are no more questions.
func (l *lookups[Q, A]) run() {
	for {
		l.mu.Lock()
		asked := l.waiting
		l.waiting, l.sent = nil, asked
		l.running = len(asked) > 0
		l.mu.Unlock()
		if len(asked) == 0 {
			return
		}
		questions := slices.Collect(maps.Keys(asked))
		ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
		answers, err := l.ask(ctx, questions)
		cancel()
		for q, waiting := range asked {
			waiting.err = err
			if err == nil {
				answer, there := answers[q]
				if waiting.answer = answer; !there {
					waiting.err = wire.ErrMalformed
				}
			}
			close(waiting.done)
		}
	}
}

// brokerLookups holds a lookups per broker.
type brokerLookups[Q comparable, A any] struct {
	ask func(ctx context.Context, address string, questions []Q) (map[Q]answer[A], error)
	mu  sync.Mutex
	of  map[string]*lookups[Q, A]
}

func (b *brokerLookups[Q, A]) get(ctx context.Context, address string, question Q) (A, error) {
	b.mu.Lock()
	l := b.of[address]
	if l == nil {
		l = &lookups[Q, A]{ask: func(ctx context.Context, questions []Q) (map[Q]answer[A], error) {
			return b.ask(ctx, address, questions)
		}}
		if b.of == nil {
			b.of = map[string]*lookups[Q, A]{}
		}
		b.of[address] = l
	}
	b.mu.Unlock()
	return l.get(ctx, question)
}

// partitionQuestion is a query about a partition, by time (ListOffsets) or leader
// epoch (OffsetForLeaderEpoch).
type partitionQuestion struct {
	partitionKey
	leaderEpoch int32 // of the leader
	about       int64
}

// oncePerPartition splits questions so that no part has two about the same partition,
// which brokers reject. Each part is ordered by topic.
func oncePerPartition(questions []partitionQuestion) (parts [][]partitionQuestion) {
	times := map[partitionKey]int{}
	for _, q := range questions {
		n := times[q.partitionKey]
		times[q.partitionKey]++
		if n == len(parts) {
			parts = append(parts, nil)
		}
		parts[n] = append(parts[n], q)
	}
	for _, part := range parts {
		slices.SortFunc(part, func(a, b partitionQuestion) int { return cmp.Compare(a.topic, b.topic) })
	}
	return parts
}

// matchAnswers assigns the answers to the questions about their partitions.
func matchAnswers[A any](into map[partitionQuestion]answer[A], questions []partitionQuestion, answers map[partitionKey]answer[A]) {
	for _, q := range questions {
		if a, ok := answers[q.partitionKey]; ok {
			into[q] = a
		}
	}
}
