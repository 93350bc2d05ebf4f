package esl

import (
	"errors"

	"trunkline/telephony/eventconn"
)

// Reasons for which a connection could not be made or has ended. Conn.Err wraps one of these or
// returns the network error.
var (
	ErrLoginDenied = errors.New("event socket: wrong password")
	ErrRejected    = errors.New("event socket: this address is not in the switch's access list")
	ErrDisconnect  = errors.New("event socket: the switch disconnected")
	ErrMalformed   = errors.New("event socket: malformed message")
	ErrTooLarge    = errors.New("event socket: message larger than the limit")
	ErrQueueFull   = errors.New("event socket: event queue full")
	ErrClosed      = errors.New("event socket: connection closed")
)

// Reasons for which a command failed while its connection stays open.
var (
	ErrTimeout        = errors.New("event socket: timeout waiting for a reply")
	ErrBusy           = errors.New("event socket: too many commands without a reply")
	ErrInvalidCommand = errors.New("event socket: command contains a line break or a zero byte")
)

// Refusal is the switch's "-ERR" or "-USAGE" reply to a command.
type Refusal struct {
	Reply string // trimmed, at most 200 bytes
}

func (r *Refusal) Error() string { return "event socket: " + r.Reply }

// connErrors has those of the errors above that eventconn returns, and all that end a connection by their metric label.
var connErrors = eventconn.Errors{
	Malformed: ErrMalformed, QueueFull: ErrQueueFull, Closed: ErrClosed, Timeout: ErrTimeout, Busy: ErrBusy,
	EndReasons: map[string]error{
		"denied": ErrLoginDenied, "rejected": ErrRejected, "disconnect": ErrDisconnect, "malformed": ErrMalformed,
		"too_large": ErrTooLarge, "slow": ErrQueueFull, "closed": ErrClosed,
	},
}
