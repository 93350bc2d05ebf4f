package kafka

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"trunkline/internal/kafka/wire"
	"trunkline/internal/rounds"
)

// lookupBatcher batches queries into few requests: those that arrive during a request are
// sent together in the next one.
type lookupBatcher[Q comparable, A any] struct {
	// send sends one request. Its error applies to all queries.
	send   func(ctx context.Context, queries []Q) (map[Q]lookupResult[A], error)
	rounds rounds.Queue[*lookup[Q, A]]

	mu       sync.Mutex
	joinable map[Q]*lookup[Q, A] // waiting or in progress
}

type lookupResult[A any] struct {
	value A
	err   error
}

type lookup[Q comparable, A any] struct {
	query  Q
	round  *rounds.Round[*lookup[Q, A]]
	result lookupResult[A] // at the end of the round
}

func newLookupBatcher[Q comparable, A any](
	send func(context.Context, []Q) (map[Q]lookupResult[A], error)) *lookupBatcher[Q, A] {
	l := &lookupBatcher[Q, A]{send: send, joinable: map[Q]*lookup[Q, A]{}}
	l.rounds.Run = l.run
	return l
}

// get returns the result of a request that is sent after the call. It waits for it, or
// for the end of ctx.
func (l *lookupBatcher[Q, A]) get(ctx context.Context, query Q) (A, error) {
	return l.start(query)[0].await(ctx)
}

// start begins the lookups of get, whose results await returns. They share a request.
func (l *lookupBatcher[Q, A]) start(queries ...Q) []*lookup[Q, A] {
	started := make([]*lookup[Q, A], len(queries))
	for i, query := range queries {
		started[i] = &lookup[Q, A]{query: query}
	}
	round := l.rounds.Add(started...)
	for _, each := range started {
		each.round = round
	}
	return started
}

// getOrJoin is like get, but accepts the result of a request in progress.
func (l *lookupBatcher[Q, A]) getOrJoin(ctx context.Context, query Q) (A, error) {
	l.mu.Lock()
	joined := l.joinable[query]
	if joined == nil {
		joined = l.start(query)[0]
		l.joinable[query] = joined
	}
	l.mu.Unlock()
	return joined.await(ctx)
}

func (l *lookup[Q, A]) await(ctx context.Context) (A, error) {
	if err := l.round.Wait(ctx); err != nil {
		var none A
		return none, err
	}
	return l.result.value, l.result.err
}

// run sends the request of a round.
func (l *lookupBatcher[Q, A]) run(round []*lookup[Q, A]) error {
	asked := map[Q]bool{}
	for _, each := range round {
		asked[each.query] = true
	}

	ctx, cancel := context.WithTimeout(context.Background(), smallRequestTimeout)
	defer cancel()

	results, err := l.send(ctx, slices.Collect(maps.Keys(asked)))

	// Held while the results are set: after that nobody joins these lookups, whose round is over.
	l.mu.Lock()
	defer l.mu.Unlock()

	for _, each := range round {
		var found bool
		each.result, found = results[each.query]
		if !found {
			each.result.err = wire.ErrMalformed
		}
		if l.joinable[each.query] == each {
			delete(l.joinable, each.query)
		}
	}

	return err
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
		l = newLookupBatcher(func(ctx context.Context, queries []Q) (map[Q]lookupResult[A], error) {
			return b.send(ctx, address, queries)
		})

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
