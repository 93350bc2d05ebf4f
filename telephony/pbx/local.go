package pbx

import (
	"context"

	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// LocalDestination takes the place of the second phone: it talks to the owner
// itself, as an AI session does.
type LocalDestination interface {
	// Take begins to talk. It returns once the call is taken; the error's
	// *sip.Failure says why it was not, fault.NotFound is an unallocated
	// number. ctx ends when the call does, and the session must then end too.
	Take(ctx context.Context, call LocalCall) (LocalSession, error)
}

// LocalSession is a call that was taken.
type LocalSession interface {
	Done() <-chan struct{} // closed when the session has ended by itself
	Cause() sip.Cause      // why; valid then
}

// LocalCall is what a LocalDestination is given.
type LocalCall struct {
	Destination    string // as dialled: ai-<provider id>
	AccountID      string
	CallID         string // of the session's leg
	OtherLegCallID string // of the owner's
	InteractionID  string
	From, To       string
	// Port is the owner's audio and Agreed what it is: the session receives
	// from it and sends by an rtp.Stream on it. It is closed by whoever gave it.
	Port   *rtp.Port
	Agreed sip.Agreed
	// Transfer calls another destination for the owner while the session still
	// talks. It returns once that has answered: the session is then to end, and
	// the owner is connected. An error leaves all as it is: a *sip.Failure, or
	// a fault whose words are for who asked.
	Transfer func(ctx context.Context, destination string) error
}
