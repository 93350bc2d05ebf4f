package kazoo

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"trunkline/internal/fault"
	"trunkline/internal/retry"
	"trunkline/origination"
)

const (
	maxConcurrentPolls = 8 // concurrent requests of a poll
	// A channel that has not appeared this long after the call was accepted will not appear: Kazoo
	// rings an owner for 30 s.
	channelTimeout = 45 * time.Second
)

// call is a call being followed.
type call struct {
	id           string
	order        origination.Order
	trackedSince time.Time // when track was called

	sem         chan struct{}     // holds a token while a request depends on the fields below or changes them
	state       origination.State // the last one that was reported
	channelSeen bool              // a channel has been seen
	cancelled   bool              // its channel is hung up when it appears
}

// track starts following a call.
func (d *Driver) track(id string, order origination.Order, state origination.State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls[id] = &call{
		id: id, order: order, trackedSince: time.Now(),
		sem: make(chan struct{}, 1), state: state, channelSeen: state.Rank() > origination.Accepted.Rank(),
	}
}

// lock locks the call. It returns an error if ctx ends first: another holder may wait for Kazoo.
func (c *call) lock(ctx context.Context) error {
	select {
	case c.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fault.Unavailable(ctx.Err(), retryAfter, "The platform has not answered in time")
	}
}

func (c *call) unlock() { <-c.sem }

func (d *Driver) findCall(id string) *call {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[id]
}

func (d *Driver) followedCalls() []*call {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.calls))
}

// Follow implements origination.Driver.
func (d *Driver) Follow(ctx context.Context, open []origination.OpenCall, report func(origination.Progress)) error {
	d.Adopt(ctx, open)
	for range retry.Ticks(ctx, d.cfg.PollEvery) {
		d.poll(ctx, report)
	}
	return nil
}

// Adopt implements origination.Adopter. Kazoo keeps its calls regardless of the process that follows
// them.
func (d *Driver) Adopt(_ context.Context, open []origination.OpenCall) (rest []origination.OpenCall) {
	for _, o := range open {
		d.track(o.CallID, o.Order, o.State)
	}
	return nil
}

// poll queries every call once. Failed queries are repeated at the next poll.
func (d *Driver) poll(ctx context.Context, report func(origination.Progress)) {
	var group errgroup.Group
	group.SetLimit(maxConcurrentPolls)
	for _, c := range d.followedCalls() {
		group.Go(func() error {
			steps, err := d.pollCall(ctx, c)
			if err != nil && ctx.Err() == nil {
				d.log.DebugContext(ctx, "reading a call's channel failed", "error", err)
			}

			for _, step := range steps {
				report(step)
				if step.State == origination.Ended {
					d.mu.Lock()
					delete(d.calls, c.id)
					d.mu.Unlock()
				}
			}

			return nil
		})
	}

	_ = group.Wait() // its functions return no errors
}

// channel is the part of Kazoo's description of a channel that tells a call's progress.
type channel struct {
	Answered bool     `json:"answered"`
	OtherLeg jsonText `json:"other_leg_call_id"`
}

// pollCall queries the progress of a call.
func (d *Driver) pollCall(ctx context.Context, c *call) ([]origination.Progress, error) {
	var now channel
	err := d.request(ctx, http.MethodGet, d.channelPath(c), nil, &now)
	// After the request, which a cancellation does not wait for: the call may have been cancelled meanwhile.
	if err := c.lock(ctx); err != nil {
		return nil, err
	}
	defer c.unlock()

	switch {
	case errors.Is(err, errNotFound):
		if !c.channelSeen && time.Since(c.trackedSince) < channelTimeout {
			return nil, nil
		}
		return []origination.Progress{d.endedStep(ctx, c)}, nil
	case err != nil:
		return nil, err
	}

	c.channelSeen = true
	if c.cancelled {
		return nil, d.hangUp(ctx, c) // the channel appeared after the cancellation
	}

	state := origination.RingingUser
	switch {
	case now.Answered && now.OtherLeg != "":
		state = origination.Bridged
	case now.Answered:
		state = origination.UserAnswered
	}

	if state.Rank() <= c.state.Rank() {
		return nil, nil
	}

	c.state = state
	return []origination.Progress{{CallID: c.id, State: state, At: time.Now()}}, nil
}

func (d *Driver) channelPath(c *call) string {
	return d.accountPath(c.order.AccountID) + "/channels/" + url.PathEscape(c.id)
}

// endedStep returns the final step of a call whose channel is gone. The caller has locked c.
func (d *Driver) endedStep(ctx context.Context, c *call) origination.Progress {
	end := origination.Progress{CallID: c.id, State: origination.Ended, Cause: origination.CauseUnknown, At: time.Now()}
	if c.cancelled {
		end.Cause = origination.CauseCancelled
		return end
	}

	var history []struct {
		CallID jsonText `json:"call_id"`
		Cause  jsonText `json:"cause"`
	}
	path := d.accountPath(c.order.AccountID) + "/clicktocall/" + url.PathEscape(c.order.ClickToCallID) + "/history"
	if err := d.request(ctx, http.MethodGet, path, nil, &history); err != nil {
		d.log.DebugContext(ctx, "reading a call's history failed", "error", err)
	}

	for _, past := range history {
		if string(past.CallID) == c.id && past.Cause != "" {
			end.Cause = string(past.Cause)
		}
	}

	return end
}
