// Package localcall is a call that a program in this process talks to, in place of
// a second phone, as an AI session does: what telephony/pbx hands over and
// aisession/sipcall takes. It holds types only.
package localcall

import (
	"context"

	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// Destination takes calls.
type Destination interface {
	// Take begins to talk, and returns once the call is taken. The error is a
	// *sip.Failure with the cause, or fault.NotFound for a destination that does
	// not exist. The session ends with ctx at the latest.
	Take(ctx context.Context, call Call) (Session, error)
}

// Session is a call that was taken.
type Session interface {
	// Done is closed when the session has ended.
	Done() <-chan struct{}
	// Cause returns why, once it has.
	Cause() sip.Cause
}

// Call is a caller who has been answered, and where they want to go.
type Call struct {
	Destination    string // as dialled: ai-<provider id>
	AccountID      string // of the caller
	CallID         string // of the session's leg
	OtherLegCallID string // of the caller's
	Caller         string // number
	// Port is the caller's audio and Agreed what it is: the session receives
	// from it and sends with an rtp.Stream on it. The caller that created it sets its remote
	// address and closes it.
	Port   *rtp.Port
	Agreed sip.Agreed
	// Transfer calls another destination for the caller while the session still
	// talks. It returns once that has answered: the session then has to end, and
	// the caller is connected. An error changes nothing: it is a *sip.Failure, or
	// a fault whose message is for the one who asked for the transfer.
	Transfer func(ctx context.Context, destination string) error
}
