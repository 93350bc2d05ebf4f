package ami

import (
	"errors"

	"trunkline/telephony/eventconn"
)

// Reasons for which a connection could not be made or has ended. Conn.Err wraps one of these or
// returns the network error.
var (
	ErrLoginDenied = errors.New("manager interface: login refused")
	ErrMalformed   = errors.New("manager interface: malformed message")
	ErrTooLarge    = errors.New("manager interface: message larger than the limit")
	ErrQueueFull   = errors.New("manager interface: event queue full")
	ErrPingTimeout = errors.New("manager interface: no answer to pings")
	ErrClosed      = errors.New("manager interface: connection closed")
)

// Reasons for which an action failed while its connection stays open.
var (
	ErrTimeout       = errors.New("manager interface: timeout waiting for a response")
	ErrBusy          = errors.New("manager interface: too many actions without a response")
	ErrInvalidAction = errors.New("manager interface: action contains a line break or a zero byte")
	ErrDuplicateID   = errors.New("manager interface: an action with this id waits for its response")
	ErrListTooLarge  = errors.New("manager interface: list larger than the limit")
	ErrListCancelled = errors.New("manager interface: list cancelled by Asterisk")
)

// Refusal is a response of Asterisk with the value Error.
type Refusal struct {
	Message string // at most 200 bytes
}

func (r *Refusal) Error() string { return "manager interface: " + r.Message }

// connErrors has those of the errors above that eventconn returns, and all that end a connection by their metric label.
var connErrors = eventconn.Errors{
	Malformed: ErrMalformed, QueueFull: ErrQueueFull, Closed: ErrClosed, Timeout: ErrTimeout, Busy: ErrBusy,
	EndReasons: map[string]error{
		"denied": ErrLoginDenied, "malformed": ErrMalformed, "too_large": ErrTooLarge,
		"slow": ErrQueueFull, "silent": ErrPingTimeout, "closed": ErrClosed,
	},
}
