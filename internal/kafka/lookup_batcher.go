package kafka

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"trunkline/internal/kafka/wire"
)

// lookupBatcher batches queries into few requests: those that arrive during a request are
// sent together in the next one.
type lookupBatcher[Q comparable, A any] struct {
	// send sends one request. Its error applies to all queries.
	send func(ctx context.Context, queries []Q) (map[Q]lookupResult[A], error)

	mu         sync.Mutex
	waiting    map[Q]*pendingLookup[A]
	inProgress map[Q]*pendingLookup[A] // of the request in progress
	running    bool
}

type lookupResult[A any] struct {
	value A
	err   error
}

type pendingLookup[A any] struct {
	result lookupResult[A]
	done   chan struct{}
}

// get returns the result of a request that is sent after the call. It waits for it, or
// for the end of ctx.
func (l *lookupBatcher[Q, A]) get(ctx context.Context, query Q) (A, error) {
	return l.start(query)[0].await(ctx)
}

// start begins the lookups of get, whose results await returns. They share the next request.
func (l *lookupBatcher[Q, A]) start(queries ...Q) []*pendingLookup[A] {
	l.mu.Lock()
	defer l.mu.Unlock()

	lookups := make([]*pendingLookup[A], len(queries))
	for i, query := range queries {
		lookups[i] = l.enqueue(query)
	}
	return lookups
}

// getOrJoin is like get, but accepts the result of a request in progress.
func (l *lookupBatcher[Q, A]) getOrJoin(ctx context.Context, query Q) (A, error) {
	l.mu.Lock()
	lookup := l.inProgress[query]
	if lookup == nil {
		lookup = l.enqueue(query)
	}
	l.mu.Unlock()
	return lookup.await(ctx)
}

// enqueue adds a query to the next request. The caller holds l.mu.
func (l *lookupBatcher[Q, A]) enqueue(query Q) *pendingLookup[A] {
	lookup := l.waiting[query]
	if lookup == nil {
		lookup = &pendingLookup[A]{done: make(chan struct{})}
		if l.waiting == nil {
			l.waiting = map[Q]*pendingLookup[A]{}
		}
		l.waiting[query] = lookup
	}
	if !l.running {
		l.running = true
		go l.run()
	}
	return lookup
}

func (l *pendingLookup[A]) await(ctx context.Context) (A, error) {
	select {
	case <-l.done:
		return l.result.value, l.result.err
	case <-ctx.Done():
		var none A
		return none, ctx.Err()
	}
}

// run sends requests until no query is waiting.
func (l *lookupBatcher[Q, A]) run() {
	for {
		l.mu.Lock()
		lookups := l.waiting
		l.waiting, l.inProgress = nil, lookups
		l.running = len(lookups) > 0
		l.mu.Unlock()
		if len(lookups) == 0 {
			return
		}
		queries := slices.Collect(maps.Keys(lookups))
		ctx, cancel := context.WithTimeout(context.Background(), smallRequestTimeout)
		results, err := l.send(ctx, queries)
		cancel()
		for q, waiting := range lookups {
			waiting.result.err = err
			if err == nil {
				result, found := results[q]
				waiting.result = result
				if !found {
					waiting.result.err = wire.ErrMalformed
				}
			}
			close(waiting.done)
		}
	}
}

// brokerLookups holds a lookupBatcher per broker.
type brokerLookups[Q comparable, A any] struct {
	send     func(ctx context.Context, address string, queries []Q) (map[Q]lookupResult[A], error)
	mu       sync.Mutex
	byBroker map[string]*lookupBatcher[Q, A]
}

func (b *brokerLookups[Q, A]) get(ctx context.Context, address string, question Q) (A, error) {
	return b.batcher(address).get(ctx, question)
}

// batcher returns the lookupBatcher of the broker at address.
func (b *brokerLookups[Q, A]) batcher(address string) *lookupBatcher[Q, A] {
	b.mu.Lock()
	defer b.mu.Unlock()

	l := b.byBroker[address]
	if l == nil {
		l = &lookupBatcher[Q, A]{send: func(ctx context.Context, queries []Q) (map[Q]lookupResult[A], error) {
			return b.send(ctx, address, queries)
		}}
		if b.byBroker == nil {
			b.byBroker = map[string]*lookupBatcher[Q, A]{}
		}
		b.byBroker[address] = l
	}
	return l
}

// partitionQuery is a query about a partition, by time (ListOffsets) or leader
// epoch (OffsetForLeaderEpoch).
type partitionQuery struct {
	partitionKey
	leaderEpoch      int32 // of the leader
	timestampOrEpoch int64
}

// oncePerPartition splits queries so that no part has two about the same partition,
// which brokers reject. Each part is ordered by topic.
func oncePerPartition(queries []partitionQuery) (parts [][]partitionQuery) {
	times := map[partitionKey]int{}
	for _, q := range queries {
		n := times[q.partitionKey]
		times[q.partitionKey]++
		if n == len(parts) {
			parts = append(parts, nil)
		}
		parts[n] = append(parts[n], q)
	}
	for _, part := range parts {
		slices.SortFunc(part, func(a, b partitionQuery) int { return cmp.Compare(a.topic, b.topic) })
	}
	return parts
}

// assignResults copies the result of each partition to the queries about it.
func assignResults[A any](byQuery map[partitionQuery]lookupResult[A], queries []partitionQuery,
	results map[partitionKey]lookupResult[A]) {
	for _, q := range queries {
		if a, ok := results[q.partitionKey]; ok {
			byQuery[q] = a
		}
	}
}
