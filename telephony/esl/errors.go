package esl

import "errors"

// Reasons for which a connection could not be made or has ended. Conn.Err wraps one of these or
// returns the network error.
var (
	ErrDenied     = errors.New("event socket: the switch does not accept the password")
	ErrRejected   = errors.New("event socket: the switch's access list does not admit this address")
	ErrDisconnect = errors.New("event socket: the switch took its leave")
	ErrMalformed  = errors.New("event socket: not a message of the event socket")
	ErrTooLarge   = errors.New("event socket: message over the limit")
	ErrSlow       = errors.New("event socket: events arrived faster than they were taken")
	ErrClosed     = errors.New("event socket: connection closed")
)

// Reasons for which a command failed while its connection stays open.
var (
	ErrTimeout = errors.New("event socket: no reply in time")
	ErrBusy    = errors.New("event socket: too many commands without a reply")
	ErrCommand = errors.New("event socket: command with a line break or a zero byte")
)

// Refusal is the switch's "-ERR" or "-USAGE" reply to a command.
type Refusal struct {
	Reply string // trimmed, at most 200 bytes
}

func (r *Refusal) Error() string { return "event socket: " + r.Reply }

// reason returns the metric label for the end of a connection.
func reason(err error) string {
	for name, sentinel := range map[string]error{
		"denied": ErrDenied, "rejected": ErrRejected, "disconnect": ErrDisconnect, "malformed": ErrMalformed,
		"too_large": ErrTooLarge, "slow": ErrSlow, "closed": ErrClosed,
	} {
		if errors.Is(err, sentinel) {
			return name
		}
	}
	return "broken"
}
