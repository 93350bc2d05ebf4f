package simulator

import (
	"context"
	"sync"
	"time"

	"trunkline/origination"
)

// Times of a call's steps after it was placed (docs/calls.md).
const (
	ownerAnswersAfter       = 300 * time.Millisecond
	destinationAnswersAfter = ownerAnswersAfter + 600*time.Millisecond
	hangUpAfter             = destinationAnswersAfter + 2*time.Second
	noAnswerAfter           = ownerAnswersAfter + 3*time.Second
)

// step is a change of a call at a time after it was placed.
type step struct {
	state origination.State
	after time.Duration
	cause string
}

// stepsTo returns the course of a call to the destination.
func stepsTo(destination string) []step {
	steps := []step{
		{origination.RingingUser, 0, ""},
		{origination.UserAnswered, ownerAnswersAfter, ""},
		{origination.Dialling, ownerAnswersAfter, ""},
	}

	switch destination {
	case "9901":
		return append(steps, step{origination.Ended, destinationAnswersAfter, "USER_BUSY"})
	case "9902":
		return append(steps, step{origination.Ended, destinationAnswersAfter, "CALL_REJECTED"})
	case "9903":
		return append(steps, step{origination.Ended, noAnswerAfter, "NO_ANSWER"})
	}

	return append(steps, step{origination.Bridged, destinationAnswersAfter, ""},
		step{origination.Ended, hangUpAfter, "NORMAL_CLEARING"})
}

// call is one simulated call. Only its goroutine uses it, except for the channel.
type call struct {
	origination.Order
	id         string
	cancelled  chan struct{}
	cancelOnce sync.Once

	begunAt     time.Time
	stepsLeft   []step                          // steps to come
	reachedAt   map[origination.State]time.Time // when it reached a state
	unpublished []publication                   // queued for Kafka, in order
}

// newCall returns a call that reached state at since. Earlier steps get their regular times.
func newCall(id string, order origination.Order, since time.Time, state origination.State) *call {
	c := &call{
		Order: order, id: id, cancelled: make(chan struct{}), begunAt: since,
		reachedAt: map[origination.State]time.Time{}, stepsLeft: stepsTo(order.Destination),
	}
	for i, s := range c.stepsLeft {
		if s.state == state {
			c.begunAt = since.Add(-s.after)
			for _, past := range c.stepsLeft[:i+1] {
				c.reachedAt[past.state] = c.begunAt.Add(past.after)
			}
			c.stepsLeft = c.stepsLeft[i+1:]
			break
		}
	}

	return c
}

// run runs the call through its course, or to an early end.
func (s *Simulator) run(c *call) {
	defer s.forget(c)
	<-s.followed
	if s.panics.Do(panicPlace, func() { s.runSteps(c) }) {
		s.report(origination.Progress{CallID: c.id, State: origination.Ended, Cause: origination.CauseLost,
			At: time.Now()})
	}
}

func (s *Simulator) runSteps(c *call) {
	last := step{state: origination.Ended}
	for _, next := range c.stepsLeft {
		cause := s.waitFor(c, next)
		if cause != "" {
			last.cause = cause
			break
		}
		if next.state == origination.Ended {
			last = next
			break
		}

		c.enter(next.state)
		s.report(origination.Progress{CallID: c.id, State: next.state, At: c.reachedAt[next.state]})
	}

	c.end(last.cause)
	s.publish(c, publishTimeout)
	s.report(origination.Progress{CallID: c.id, State: origination.Ended, Cause: last.cause,
		At: c.reachedAt[origination.Ended]})
	s.publishRest(c)
}

// waitFor waits until the step is due. It returns a cause if the call ends before.
func (s *Simulator) waitFor(c *call, next step) (cause string) {
	due := time.NewTimer(time.Until(c.begunAt.Add(next.after)))
	defer due.Stop()

	if time.Until(c.begunAt.Add(next.after)) > 0 {
		s.publish(c, publishTimeout)
	}

	select {
	case <-s.ending:
		return origination.CauseLost
	case <-c.cancelled:
		return origination.CauseCancelled
	case <-due.C:
		return ""
	}
}

// enter records that the call reached the state and queues its events.
func (c *call) enter(state origination.State) {
	c.reachedAt[state] = time.Now()
	if state == origination.UserAnswered {
		c.addRecord(c.startedEvent())
	}
}

// end records the end and creates the call's records.
func (c *call) end(cause string) {
	c.reachedAt[origination.Ended] = time.Now()
	for _, row := range c.rows(cause) {
		c.unpublished = append(c.unpublished,
			func(ctx context.Context, r RecordPublisher) error { return r.PublishCDR(ctx, c.AccountID, row) })
	}
	_, answered := c.reachedAt[origination.UserAnswered]
	if answered {
		c.addRecord(c.finishedEvent(cause))
	}
}

func (c *call) addRecord(data []byte) {
	c.unpublished = append(c.unpublished,
		func(ctx context.Context, r RecordPublisher) error { return r.PublishEvent(ctx, c.AccountID, data) })
}
