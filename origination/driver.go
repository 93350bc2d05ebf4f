package origination

import (
	"context"
	"time"

	"trunkline/internal/tracing"
)

// State is the progress of a click-to-call call.
type State string

// The states in order. A call may skip some and always reaches Ended.
const (
	Accepted     State = "accepted"
	RingingUser  State = "ringing_user"
	UserAnswered State = "user_answered"
	Dialling     State = "dialling"
	Bridged      State = "bridged"
	Ended        State = "ended"
)

// Order is one call to place: ring the owner, dial the destination when the owner has answered, and
// connect the two.
type Order struct {
	ID            string // generated here before anything is dialled
	InteractionID string // in the record of every leg
	AccountID     string
	Domain        string // SIP domain of the account
	UserID        string // of the owner
	Extension     string // presence_id of the owner, whose phone rings first
	Destination   string // decoded; a number or an extension
	ClickToCallID string // the platform's click-to-call resource of the user; "" before it was made

	Trace tracing.Carrier // of the HTTP request; not stored
}

// Placed is a platform's answer to an accepted Order.
type Placed struct {
	// CallID is the origination_call_id to return: Order.ID, or the platform's own id. "" if the
	// platform placed the call but gave none.
	CallID string
	// ClickToCallID is the id of the user's click-to-call resource on the platform if this Order
	// created it, otherwise "".
	ClickToCallID string
}

// Progress is one step of a call.
type Progress struct {
	CallID string // Placed.CallID
	State  State
	Cause  string // Q.850 name as in hangup_cause; with Ended only
	At     time.Time
}

// Driver places calls on one phone platform. Its methods are safe for concurrent use.
type Driver interface {
	// Originate returns when the platform has accepted the order; it does not wait for an answer. The
	// error is fault.Refused (502) if the platform refused and fault.Unavailable (503) if it could not
	// be asked; as far as is known, no call was placed then.
	Originate(ctx context.Context, order Order) (Placed, error)
	// Cancel ends a call in any state with the cause ORIGINATOR_CANCEL. The error is fault.NotFound
	// for a call that this process's driver does not have.
	Cancel(ctx context.Context, callID string) error
	// Follow reports the progress of the calls, in order for each call, until ctx ends. It is called
	// once. open has the calls that had not ended when the process started: the driver follows those
	// that the platform still has, and reports Ended for the rest. A step may be reported more than
	// once.
	Follow(ctx context.Context, open []Open, report func(Progress)) error
}

// Open is an unfinished call of an earlier process.
type Open struct {
	Order
	CallID string
	State  State
	Since  time.Time
}
