package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// drainTimeout bounds the wait of pause for the responses to earlier requests.
const drainTimeout = 5 * time.Second

// errPaused is the error of a produce request to a partition that is being compacted.
var errPaused = errors.New("the partition is being compacted")

// pause blocks produce requests to a partition until resume is called. It returns when
// the earlier ones have been answered.
func (d *durability) pause(ctx context.Context, p partition) (resume func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()

	resumed := make(chan struct{})
	d.mu.Lock()
	// Before the wait, so that no further request begins while the earlier ones end.
	d.paused[p] = resumed
	d.mu.Unlock()

	resume = func() {
		d.mu.Lock()
		delete(d.paused, p)
		d.mu.Unlock()
		close(resumed)
	}

	for {
		d.mu.Lock()
		requests := d.inFlight[p]
		idle := requests == nil || requests.requests == 0
		d.mu.Unlock()

		if idle {
			return resume, nil
		}

		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			resume()
			return nil, fmt.Errorf("waiting for produce requests: %w", ctx.Err())
		}
	}
}

// awaitResume waits until none of the partitions is paused, or closed is closed.
func (d *durability) awaitResume(partitions []partition, closed <-chan struct{}) {
	for _, p := range partitions {
		d.mu.Lock()
		resumed := d.paused[p]
		d.mu.Unlock()

		if resumed != nil {
			select {
			case <-resumed:
			case <-closed:
			}
		}
	}
}
