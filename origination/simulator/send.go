package simulator

import (
	"context"
	"time"
)

// send publishes one record or event to Kafka.
type send func(ctx context.Context, records Records) error

const (
	sendTimeout = time.Second // longest wait of a call's course for Kafka
	resendPause = 500 * time.Millisecond
)

// send publishes the call's queue, for at most timeout. The remainder is published with the next
// step.
func (s *Simulator) send(c *call, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	_ = s.sendIn(ctx, c) // it stays queued; sendAll logs the failure
}

func (s *Simulator) sendIn(ctx context.Context, c *call) error {
	for len(c.sends) > 0 {
		if err := c.sends[0](ctx, s.records); err != nil {
			return err
		}
		c.sends = c.sends[1:]
	}
	return nil
}

// sendAll retries until everything is published or, at the end of Follow, drainTimeout has passed.
func (s *Simulator) sendAll(c *call) {
	for logged := false; len(c.sends) > 0; logged = true {
		ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
		err := s.sendIn(ctx, c)
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
			over = s.drained.Done()
		default:
		}
		select {
		case <-over:
			s.log.Error("a simulated call's records lost: Kafka did not accept them in time", "records", len(c.sends))
			return
		case <-time.After(resendPause):
		}
	}
}
