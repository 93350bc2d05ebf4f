package identity

import (
	"context"
	"sync/atomic"
	"time"

	"trunkline/internal/fault"
)

// maxStaleness is the time for which memory is used although it may be stale. It is
// measured by the clock of the machine, not by Config.Now: it is about the process.
const maxStaleness = 10 * time.Second

// memoryFreshness records when memory was known to be as current as the database. Times are those
// at which a poll began, in Unix nanoseconds.
type memoryFreshness struct {
	polledAt    atomic.Int64 // the last poll
	currentAt   atomic.Int64 // the last one after which memory was current
	behindSince atomic.Int64 // the first that found a change which was not loaded since; 0 if there is none
}

// begin is called when a poll begins, and returns its time.
func (f *memoryFreshness) begin() int64 {
	now := time.Now().UnixNano()
	f.polledAt.Store(now)
	return now
}

// current is called after a poll that began at began and made memory current.
func (f *memoryFreshness) current(began int64) {
	f.currentAt.Store(began)
	f.behindSince.Store(0)
}

// behind is called when a poll finds that memory is stale.
func (f *memoryFreshness) behind(began int64) { f.behindSince.CompareAndSwap(0, began) }

// age returns the time since memory was known to be current.
func (f *memoryFreshness) age() time.Duration { return sinceNanos(f.currentAt.Load()) }

// isBehind reports whether a change has not been loaded for maxStaleness.
func (f *memoryFreshness) isBehind() bool {
	since := f.behindSince.Load()
	return since != 0 && sinceNanos(since) > maxStaleness
}

func sinceNanos(at int64) time.Duration { return time.Duration(time.Now().UnixNano() - at) }

// requireFresh returns fault.KindUnavailable if memory was not known to be current for
// maxStaleness: then a token or key may have been revoked. Where nothing polls, as in a
// management command, it polls itself.
func (c *databaseChanges) requireFresh(ctx context.Context) error {
	if c.freshness.age() <= maxStaleness {
		return nil
	}
	if sinceNanos(c.freshness.polledAt.Load()) > maxStaleness {
		c.pollEarly(ctx)
	}
	if c.freshness.age() <= maxStaleness {
		return nil
	}

	return errStale
}

var errStale = fault.Unavailable(nil, time.Second,
	"Access cannot be checked: changes could not be read from the database for "+maxStaleness.String())
