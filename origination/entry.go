package origination

import (
	"context"
	"time"

	"trunkline/internal/fault"
)

// entry is one call of a callStore, guarded by its lock.
type entry struct {
	row
	placed         bool // the platform has accepted it: its steps may be published
	stored         int  // number of steps in the database
	writeQueued    bool // in callStore.urgent or dirty
	rowChanged     bool // fields other than the steps have changed
	announceQueued bool // in callStore.announceQueue
	deleted        bool // the row is to be deleted
	cancelSent     bool // Driver.Cancel was called
	writeResults   []chan error
}

// writeResult receives the result of one write.
type writeResult <-chan error

func (r writeResult) wait(ctx context.Context) error {
	select {
	case err := <-r:
		return err
	case <-ctx.Done():
		return fault.Unavailable(ctx.Err(), time.Second, "The database has not answered in time")
	}
}

// earlySteps is progress that arrived before the platform's response with the call's id.
type earlySteps struct {
	steps []Progress // in the order of states
	since time.Time
}

// advances reports whether a step would advance a call that has these steps. Other steps are dropped,
// so that a platform's repeats use no memory.
func (e earlySteps) advances(to State) bool {
	last := Accepted
	n := len(e.steps)
	if n > 0 {
		last = e.steps[n-1].State
	}
	return to.Rank() > last.Rank()
}

const (
	maxEarly = 1024
	earlyTTL = time.Minute // at least: expireEarly runs every purgeInterval
)

// alreadyWritten returns a result that is available immediately.
func alreadyWritten() writeResult {
	done := make(chan error, 1)
	done <- nil
	return done
}
