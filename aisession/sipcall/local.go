package sipcall

import (
	"context"
	"strings"

	"trunkline/aisession"
	"trunkline/internal/aiprotocol"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// Local is a call that this process has connected already: somebody has dialled
// a provider's address, and their leg's media is handed over.
type Local struct {
	Destination    string // as dialled: ai-<provider id>
	AccountID      string // of who dialled
	CallID         string // of the session's own leg
	OtherLegCallID string
	Caller         string
	Port           *rtp.Port // of the caller; it stays theirs, and is theirs to close
	Agreed         sip.Agreed
	// Transfer calls another destination for the caller, and returns once that
	// has answered: the call is then no more the session's. The error's words
	// are for the provider.
	Transfer func(ctx context.Context, destination string) error
}

// Taken is a Local that a provider took.
type Taken struct {
	done  chan struct{}
	cause sip.Cause // set before done is closed
}

// Done is closed when the session has ended.
func (t *Taken) Done() <-chan struct{} { return t.done }

// Cause is why, once it has.
func (t *Taken) Cause() sip.Cause { return t.cause }

// Take opens a session for a connected call, which ends with ctx at the latest.
// The error's kind says why there is none: fault.KindNotFound for an address
// that is no provider's, or none that the caller may see.
func (h *Handler) Take(ctx context.Context, l Local) (*Taken, error) {
	provider, err := h.visible(ctx, strings.TrimPrefix(l.Destination, Prefix), l.AccountID)
	if err != nil {
		return nil, err
	}
	m := &media{port: l.Port, source: l.Agreed.Remote.Addr(), codec: l.Agreed.Formats[0].Codec}
	m.format = formatOf(m.codec)
	m.settle(l.Agreed)
	session, err := h.deps.Sessions.Open(ctx, aisession.Request{
		Provider: provider, Way: aisession.WaySIP, Format: m.format, Clocked: true,
		Call:   aiprotocol.Call{CallID: l.CallID, OtherLegCallID: l.OtherLegCallID},
		Caller: l.Caller, Callee: l.Destination,
	})
	if err != nil {
		return nil, err
	}
	m.session = session
	taken := &Taken{done: make(chan struct{})}
	l.Port.Receive(m)
	hungUp := context.AfterFunc(ctx, func() { session.HungUp(aiprotocol.NormalClearing) })
	go func() { // ends with the session, which ends with ctx
		defer close(taken.done)
		defer l.Port.Receive(nil)
		defer hungUp()
		session.Run(context.WithoutCancel(ctx), &call{
			media: m, hangup: func(cause sip.Cause) { taken.cause = cause }, transfer: l.Transfer,
		})
	}()
	return taken, nil
}
