package origination

import (
	"context"
	"time"

	"trunkline/internal/tracing"
)

// State is the progress of a click to call.
type State string

// The states in their order. A call may skip some (the owner's phone was not rung)
// and always comes to Ended.
const (
	Accepted     State = "accepted"
	RingingUser  State = "ringing_user"
	UserAnswered State = "user_answered"
	Dialling     State = "dialling"
	Bridged      State = "bridged"
	Ended        State = "ended"
)

// Order is one call to be placed: ring the owner, and once they answer, dial
// the destination and join the two.
type Order struct {
	ID            string // ours, made before anything is dialled
	InteractionID string // of every leg's record
	AccountID     string
	Domain        string // the account's
	UserID        string // the owner
	Extension     string // the owner's presence_id: the first leg
	Destination   string // decoded; a number or an extension
	ClickToCallID string // the platform's click-to-call resource of the user; "" before it was made

	Trace tracing.Carrier // the request that asked for it; not stored
}

// Placed is a platform's answer to an Order it accepted.
type Placed struct {
	// CallID is the origination_call_id to hand out: Order.ID, or the
	// platform's own. "" when the platform gave none, although it placed the call.
	CallID string
	// ClickToCallID is the platform's click-to-call resource of the user when
	// this Order made it; "" when there was nothing to make.
	ClickToCallID string
}

// Progress is one step of a call.
type Progress struct {
	CallID string // Placed.CallID
	State  State
	Cause  string // Q.850 name as in hangup_cause; with Ended only
	At     time.Time
}

// Driver places calls on one phone platform. Its methods are called from many
// goroutines.
type Driver interface {
	// Originate returns once the platform has accepted the order: it does not
	// wait for an answer. Errors are fault.Refused (502) when the platform said
	// no and fault.Unavailable (503) when it could not be asked; nothing was
	// placed then, as far as can be known.
	Originate(ctx context.Context, order Order) (Placed, error)
	// Cancel ends a call at whatever state it is in, with the cause
	// ORIGINATOR_CANCEL; fault.NotFound for a call that this process's driver
	// does not have.
	Cancel(ctx context.Context, callID string) error
	// Follow reports the progress of the calls, in order for each call, until
	// ctx ends; it is called once. open are the calls that had not ended when the
	// process started: the driver follows those that the platform still has, and
	// reports Ended for the rest. A step may be reported more than once.
	Follow(ctx context.Context, open []Open, report func(Progress)) error
}

// Open is a call that an earlier process left unfinished.
type Open struct {
	Order
	CallID string
	State  State
	Since  time.Time
}
