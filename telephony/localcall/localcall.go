// Package localcall has what the packages of calls that this process connects share.
//
// A Destination is a second party in this process instead of a phone, such as an AI session: origination/pbx passes
// such calls to aisession/sipcall. A Recorder is told of every call, and hears it at the caller's port: package
// recording records calls, and aisession/listening has AI providers listen to them.
package localcall

import (
	"context"

	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// Prefix is the prefix of the user parts and numbers that local calls are for. An id follows.
const Prefix = "ai-"

// Destination is the second party of local calls.
type Destination interface {
	// Connect connects a call and returns its session. The error is a *sip.Failure with the cause, or
	// fault.NotFound for a destination that does not exist. The session ends with ctx at the latest.
	Connect(ctx context.Context, call Call) (Session, error)
}

// Session is a connected call.
type Session interface {
	// Done is closed when the session has ended.
	Done() <-chan struct{}
	// Cause returns the cause of the end. It is valid after Done is closed.
	Cause() sip.Cause
}

// Call is an answered caller with the destination to connect.
type Call struct {
	Destination    string // as dialled: Prefix and a provider's id
	AccountID      string // of the caller
	CallID         string // id of the session's leg
	OtherLegCallID string // id of the caller's leg
	Caller         string // number
	// Port has the caller's audio, in the format of Negotiated: the session receives from it and sends with
	// an rtp.Stream on it. The caller of Connect sets the port's remote address and closes it.
	Port       *rtp.Port
	Negotiated sip.NegotiatedMedia
	// Transfer calls another destination for the caller while the session continues. It returns when
	// that destination has answered: the session must then end, and the caller is connected to the
	// destination. An error leaves the call unchanged. It is a *sip.Failure, or a fault whose message
	// is sent to the party that requested the transfer.
	Transfer func(ctx context.Context, destination string) error
}
