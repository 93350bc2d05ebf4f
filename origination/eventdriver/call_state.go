package eventdriver

import (
	"time"

	"trunkline/origination"
)

// Call is the state of an open call that does not depend on the platform. Driver.mu guards it.
type Call struct {
	ID        string
	State     origination.State
	Cancelled bool // its channels are hung up when they appear

	epoch        int       // of the connection over which it was placed; 0 for a call of an earlier process
	placing      bool      // the platform has not answered the order yet
	seen         bool      // an event or a channel of it has been seen
	unwanted     bool      // Originate fails or has failed for it: its channels are hung up too, and nothing is reported
	missingSince time.Time // when comparisons first found no channel; zero while they find one
}

// TrackedCall is a platform's state of an open call, from events and comparisons. It embeds Call.
type TrackedCall interface {
	common() *Call
	HasEnded() bool     // the call has ended
	Cause() string      // the most specific known cause
	Channels() []string // channels that may exist; they are hung up when the call is cancelled
}

func (c *Call) common() *Call { return c }

// mustEnd reports whether the call's channels are hung up when they appear.
func (c *Call) mustEnd() bool { return c.Cancelled || c.unwanted }

// The types that embed Call, and have common by it, are in other packages.
var _ interface{ common() *Call } = (*Call)(nil)

// markSeen records that an event or channel of the call was seen.
func (c *Call) markSeen() {
	c.seen = true
	c.missingSince = time.Time{}
}

// Advance moves the call to the state and returns the steps to report, including skipped ones; none if
// the call has reached the state already. ringing_user is not filled in, because the owner's phone may
// not have rung.
func (c *Call) Advance(to origination.State) []origination.State {
	var steps []origination.State
	for _, state := range []origination.State{origination.UserAnswered, origination.Dialling, to} {
		if state.Rank() <= to.Rank() && state.Rank() > c.State.Rank() {
			c.State = state
			steps = append(steps, state)
		}
	}
	return steps
}
