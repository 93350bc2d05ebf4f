package sipcall

import (
	"context"
	"strings"

	"trunkline/aisession"
	"trunkline/internal/aiprotocol"
	"trunkline/telephony/localcall"
	"trunkline/telephony/sip"
)

// localSession is a local call connected to a provider. It implements localcall.Session.
type localSession struct {
	endSignal chan struct{}
	endCause  sip.Cause // set before endSignal is closed
}

// Done implements localcall.Session.
func (s *localSession) Done() <-chan struct{} { return s.endSignal }

// Cause implements localcall.Session.
func (s *localSession) Cause() sip.Cause { return s.endCause }

// Connect implements localcall.Destination. It opens a session for a call to a provider's address. The
// error is fault.NotFound if the address has no provider that the caller may see.
func (h *Handler) Connect(ctx context.Context, local localcall.Call) (localcall.Session, error) {
	provider, err := h.findVisible(ctx, strings.TrimPrefix(local.Destination, localcall.Prefix), local.AccountID)
	if err != nil {
		return nil, err
	}

	m := &media{port: local.Port, codec: local.Negotiated.Codecs[0].Codec}
	m.format = localcall.FormatOf(m.codec)
	if err := m.apply(local.Negotiated); err != nil {
		return nil, err
	}

	session, err := h.deps.Sessions.Open(ctx, aisession.Request{
		Provider: provider, Ingress: aisession.IngressSIP, Format: m.format, RTPTimestamps: true,
		Call:   aiprotocol.Call{CallID: local.CallID, OtherLegCallID: local.OtherLegCallID},
		Caller: local.Caller, Callee: local.Destination,
	})
	if err != nil {
		return nil, err
	}

	m.session = session
	connected := &localSession{endSignal: make(chan struct{})}
	local.Port.SetReceiver(m)

	hungUp := context.AfterFunc(ctx, func() { session.CallEnded(aiprotocol.NormalClearing) })
	go func() { // ends with the session, which ends with ctx
		defer close(connected.endSignal)
		defer local.Port.SetReceiver(nil)
		defer hungUp()

		session.RunRecovered(func() {
			session.Run(context.WithoutCancel(ctx), &call{
				media: m, hangup: func(cause sip.Cause) { connected.endCause = cause }, dialTransfer: local.Transfer,
			})
		})
	}()

	return connected, nil
}
