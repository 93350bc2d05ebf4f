package stats

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// listedFeeds has the states of feeds that a test sets.
type listedFeeds struct {
	mu     sync.Mutex
	states []FeedState
}

func (l *listedFeeds) set(states ...FeedState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.states = states
}

func (l *listedFeeds) FeedStates(context.Context) ([]FeedState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.states, nil
}

// A worker whose partition has no feed does not poll: it is woken by the first one, whether that
// comes before or after it begins to wait.
func TestAWorkerIsWokenByTheFirstFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		feeds := &listedFeeds{}
		w := &feedStatePoller{feeds: feeds, log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()

		go w.run(ctx)

		woken := map[int]int{}
		for _, partition := range []int{1, 2, 3} {
			w.setWake(partition, func() { woken[partition]++ })
		}

		w.setWake(3, nil)
		time.Sleep(time.Minute)
		synctest.Wait()

		if len(woken) > 0 {
			t.Fatalf("woken without a feed: %v", woken)
		}

		feeds.set(FeedState{Account: "a", Partition: 2, Name: "f"}, FeedState{Account: "b", Partition: 3, Name: "f"})
		time.Sleep(2 * feedPollEvery)
		synctest.Wait()
		w.mu.Lock()

		if woken[1] != 0 || woken[2] == 0 || woken[3] != 0 {
			t.Errorf("woken: %v", woken)
		}
		w.mu.Unlock()

		w.setWake(3, func() { woken[3]++ })
		if woken[3] != 1 {
			t.Error("a worker that begins to wait after its feed came is not woken")
		}
	})
}
