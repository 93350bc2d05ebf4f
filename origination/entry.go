package origination

import (
	"context"
	"time"

	"trunkline/internal/fault"
)

// entry is one call in the book, guarded by the book's lock.
type entry struct {
	row
	placed    bool // the platform accepted it: its steps may be announced
	stored    int  // steps in the database
	waiting   bool // to be written
	whole     bool // not only its steps
	hearing   bool // in heard
	forget    bool // to be deleted
	cancelled bool // its driver was told
	written   []chan error
}

// outcome says, once, whether a write is in the database.
type outcome <-chan error

func (o outcome) wait(ctx context.Context) error {
	select {
	case err := <-o:
		return err
	case <-ctx.Done():
		return fault.Unavailable(ctx.Err(), time.Second, "The database has not answered in time")
	}
}

// early is progress that came before the platform's answer with the call's id.
type early struct {
	steps []Progress // each further than the one before
	since time.Time
}

// rises says whether a call that has taken the steps would take another. What
// it would not is not kept: however often a platform repeats itself, there is
// room for what comes after.
func (e early) rises(to State) bool {
	last := Accepted
	if n := len(e.steps); n > 0 {
		last = e.steps[n-1].State
	}
	return to.Rank() > last.Rank()
}

const (
	mostEarly = 1024
	earlyLife = time.Minute
)

// stored is the answer where there is nothing to wait for.
func stored() outcome {
	done := make(chan error, 1)
	done <- nil
	return done
}
