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
	steps []Progress
	since time.Time
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
