package simulator

import (
	"context"
	"sync"
	"time"

	"trunkline/origination"
)

// Times of a call's steps after it was placed (docs/calls.md).
const (
	ownerAnswers       = 300 * time.Millisecond
	destinationAnswers = ownerAnswers + 600*time.Millisecond
	hangUp             = destinationAnswers + 2*time.Second
	noAnswer           = ownerAnswers + 3*time.Second
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
		{origination.UserAnswered, ownerAnswers, ""},
		{origination.Dialling, ownerAnswers, ""},
	}

	switch destination {
	case "9901":
		return append(steps, step{origination.Ended, destinationAnswers, "USER_BUSY"})
	case "9902":
		return append(steps, step{origination.Ended, destinationAnswers, "CALL_REJECTED"})
	case "9903":
		return append(steps, step{origination.Ended, noAnswer, "NO_ANSWER"})
	}

	return append(steps, step{origination.Bridged, destinationAnswers, ""},
		step{origination.Ended, hangUp, "NORMAL_CLEARING"})
}

// call is one simulated call. Only its goroutine uses it, except for the channel.
type call struct {
	origination.Order
	id         string
	cancelled  chan struct{}
	cancelOnce sync.Once

	begun       time.Time
	left        []step                          // steps to come
	times       map[origination.State]time.Time // when it reached a state
	unpublished []publication                   // queued for Kafka, in order
}

// newCall returns a call that reached state at since. Earlier steps get their regular times.
func newCall(id string, order origination.Order, since time.Time, state origination.State) *call {
	c := &call{
		Order: order, id: id, cancelled: make(chan struct{}), begun: since,
		times: map[origination.State]time.Time{}, left: stepsTo(order.Destination),
	}
	for i, s := range c.left {
		if s.state == state {
			c.begun = since.Add(-s.after)
			for _, past := range c.left[:i+1] {
				c.times[past.state] = c.begun.Add(past.after)
			}
			c.left = c.left[i+1:]
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
	for _, next := range c.left {
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
		s.report(origination.Progress{CallID: c.id, State: next.state, At: c.times[next.state]})
	}

	c.end(last.cause)
	s.publish(c, publishTimeout)
	s.report(origination.Progress{CallID: c.id, State: origination.Ended, Cause: last.cause,
		At: c.times[origination.Ended]})
	s.publishRest(c)
}

// waitFor waits until the step is due. It returns a cause if the call ends before.
func (s *Simulator) waitFor(c *call, next step) (cause string) {
	due := time.NewTimer(time.Until(c.begun.Add(next.after)))
	defer due.Stop()

	if time.Until(c.begun.Add(next.after)) > 0 {
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
	c.times[state] = time.Now()
	if state == origination.UserAnswered {
		c.addRecord(c.startedEvent())
	}
}

// end records the end and creates the call's records.
func (c *call) end(cause string) {
	c.times[origination.Ended] = time.Now()
	for _, row := range c.rows(cause) {
		c.unpublished = append(c.unpublished,
			func(ctx context.Context, r Records) error { return r.PublishCDR(ctx, c.AccountID, row) })
	}
	_, answered := c.times[origination.UserAnswered]
	if answered {
		c.addRecord(c.finishedEvent(cause))
	}
}

func (c *call) addRecord(data []byte) {
	c.unpublished = append(c.unpublished,
		func(ctx context.Context, r Records) error { return r.PublishEvent(ctx, c.AccountID, data) })
}
