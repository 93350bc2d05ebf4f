package requests

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/cmd/trunkline-bench/load"
)

// Operation is one kind of request.
type Operation struct {
	Name   string
	Weight int // its share of the requests is Weight by the sum of all
	// Do sends the n-th request of the operation, from 0. status is 0 without a response; err is
	// nil for the expected response.
	Do func(ctx context.Context, n uint64) (status int, err error)
}

// MaxWeight bounds the sum of all weights.
const MaxWeight = 10_000

// Load sends the operations in turn, according to their weights.
type Load struct {
	operations  []Operation
	connections int
	pattern     []int // operation of request n, at index n modulo its length
	nextNumbers []atomic.Uint64
	counters    []counter

	mu        sync.Mutex
	startedAt time.Time
	rate      float64       // 0: closed loop
	next      atomic.Uint64 // request number
	sent      atomic.Uint64 // requests sent so far
}

// New returns a load with a number of concurrent requests.
func New(operations []Operation, connections int) (*Load, error) {
	if connections < 1 {
		return nil, errors.New("requests: at least one connection is needed")
	}
	sum := 0
	for _, o := range operations {
		if o.Weight < 1 {
			return nil, errors.New("requests: a weight must be at least 1")
		}
		sum += o.Weight
	}
	if sum == 0 || sum > MaxWeight {
		return nil, errors.New("requests: there must be operations, with weights of at most 10,000 together")
	}
	return &Load{
		operations: operations, connections: connections, pattern: interleave(operations, sum),
		nextNumbers: make([]atomic.Uint64, len(operations)), counters: make([]counter, len(operations)),
	}, nil
}

// interleave distributes each operation evenly over a round.
func interleave(operations []Operation, sum int) []int {
	credit := make([]int, len(operations))
	pattern := make([]int, sum)
	for n := range pattern {
		best := 0
		for i, o := range operations {
			credit[i] += o.Weight
			if credit[i] > credit[best] {
				best = i
			}
		}
		credit[best] -= sum
		pattern[n] = best
	}
	return pattern
}

// Run sends requests until ctx ends, and waits for the outstanding responses. Rate 0 is as fast
// as possible. It may be called again.
func (l *Load) Run(ctx context.Context, rate float64) {
	l.mu.Lock()
	l.startedAt, l.rate = time.Now(), rate
	l.next.Store(0)
	l.sent.Store(0)
	l.mu.Unlock()
	var running sync.WaitGroup
	for range l.connections {
		running.Go(func() { l.sendRequests(ctx, rate) })
	}
	running.Wait()
	l.mu.Lock()
	l.rate = 0
	l.mu.Unlock()
}

func (l *Load) sendRequests(ctx context.Context, rate float64) {
	for {
		n := l.next.Add(1) - 1
		due := time.Now()
		if rate > 0 {
			due = l.startedAt.Add(time.Duration(float64(n) / rate * float64(time.Second)))
			load.SleepUntil(ctx, due)
		}
		if ctx.Err() != nil {
			return
		}
		l.sent.Add(1)
		kind := l.pattern[n%uint64(len(l.pattern))]
		// Requests that were sent are completed.
		status, err := l.operations[kind].Do(context.WithoutCancel(ctx), l.nextNumbers[kind].Add(1)-1)
		l.counters[kind].count(time.Since(due), status, err)
	}
}

// Behind returns the number of due requests that were not sent yet, because all connections wait
// for a response.
func (l *Load) Behind() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rate == 0 {
		return 0
	}
	due, sent := uint64(time.Since(l.startedAt).Seconds()*l.rate)+1, l.sent.Load()
	return max(due, sent) - sent
}

// Tally returns the counts of responses so far, by the operation's name.
func (l *Load) Tally() map[string]*Tally {
	tallies := make(map[string]*Tally, len(l.operations))
	for i := range l.counters {
		tallies[l.operations[i].Name] = l.counters[i].copySum()
	}
	return tallies
}
