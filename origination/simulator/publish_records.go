package simulator

import (
	"context"
	"time"
)

// publication publishes one record or event to Kafka.
type publication func(ctx context.Context, records RecordPublisher) error

const (
	publishTimeout = time.Second // longest wait of a call's course for Kafka
	republishPause = 500 * time.Millisecond
)

// publish publishes what the call has queued, for at most timeout. The remainder is published with the next
// step.
func (s *Simulator) publish(c *call, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_ = s.publishQueued(ctx, c) // it stays queued; publishRest logs the failure
}

func (s *Simulator) publishQueued(ctx context.Context, c *call) error {
	for len(c.unpublished) > 0 {
		if err := c.unpublished[0](ctx, s.records); err != nil {
			return err
		}
		c.unpublished = c.unpublished[1:]
	}
	return nil
}

// publishRest retries until everything is published or, at the end of Follow, drainTimeout has passed.
func (s *Simulator) publishRest(c *call) {
	for logged := false; len(c.unpublished) > 0; logged = true {
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		err := s.publishQueued(ctx, c)
		cancel()

		if err == nil {
			return
		}

		if !logged {
			s.log.Warn("publishing a simulated call's records failed, will retry", "error", err)
		}

		var over <-chan struct{} // nil blocks until Follow ends
		select {
		case <-s.ending:
			over = s.draining.Done()
		default:
		}

		select {
		case <-over:
			s.log.Error("a simulated call's records lost: Kafka did not accept them in time",
				"records", len(c.unpublished))
			return
		case <-time.After(republishPause):
		}
	}
}
