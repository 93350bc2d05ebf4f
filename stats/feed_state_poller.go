package stats

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"trunkline/internal/retry"
)

// FeedState tells whether a platform's feed is connected, on any node.
type FeedState struct {
	Account   string
	Partition int // of the account's new events
	Name      string
	Connected bool
}

// Feeds knows the platforms' feeds.
type Feeds interface {
	// FeedStates returns the state of each feed for each account that gets events from it. It is asked once a
	// second; after an error the states known before count.
	FeedStates(ctx context.Context) ([]FeedState, error)
}

// feedStatePoller reads the states of the feeds.
type feedStatePoller struct {
	feeds Feeds
	log   *slog.Logger

	mu     sync.Mutex
	read   bool // states are known
	states []FeedState
	wakes  wakeFunctions // of workers that know no feed
}

// run reads the states until ctx ends.
func (w *feedStatePoller) run(ctx context.Context) {
	for range retry.Rounds(ctx, feedPollEvery) {
		states, err := w.feeds.FeedStates(ctx)
		switch {
		case err == nil:
			w.mu.Lock()
			w.read, w.states = true, states
			for _, s := range states {
				w.wakes.wake(s.Partition)
			}
			w.mu.Unlock()
		case ctx.Err() == nil:
			w.log.Warn("states of the feeds cannot be read, alerts of feeds wait", "error", err)
		}
	}
}

// setWake sets the function that is called when the partition has a feed, at once if it has one already;
// nil: none. It calls wake with w.mu locked.
func (w *feedStatePoller) setWake(partition int, wake func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	isFollowed := slices.ContainsFunc(w.states, func(s FeedState) bool { return s.Partition == partition })
	w.wakes.set(partition, wake, isFollowed)
}

// statesOf returns the states whose events are in a partition; ok is false before they are known.
func (w *feedStatePoller) statesOf(partition int) (states []FeedState, ok bool) {
	if w == nil {
		return nil, false
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	for _, s := range w.states {
		if s.Partition == partition {
			states = append(states, s)
		}
	}

	return states, w.read
}
