package sipcall

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
	"trunkline/telephony/audio"
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// Deps has the dependencies of a Handler.
type Deps struct {
	Sessions  *aisession.Service
	Providers aisession.Providers
	Ports     *rtp.Ports
	// MayCall reports whether users of the first account may call providers of the second. The first
	// account is "" for trusted networks, which may call all.
	MayCall func(accountID, providerAccountID string) bool
	// Encryption decides whether the media of calls uses SRTP.
	Encryption sip.Encryption
	// Admission limits the calls of phones, and where providers may transfer calls to.
	Admission Admission
	// Recorder records calls; nil: none are recorded.
	Recorder localcall.Recorder
	Log      *slog.Logger
}

// Admission limits calls. Errors are fault.Forbidden and fault.Limited.
type Admission interface {
	// Admit counts a call of a phone's user, until leave.
	Admit(ctx context.Context, caller sip.User, from netip.Addr) (leave func(), err error)
	// AdmitTransfer returns nil if a provider may transfer a user's call, or with a zero user one of
	// the account that came from a PBX, to a destination.
	AdmitTransfer(ctx context.Context, caller sip.User, accountID, destination string) error
}

// Handler handles calls to providers. Register it with sip.Server.Handle and localcall.Prefix.
type Handler struct{ deps Deps }

// New returns a Handler.
func New(deps Deps) *Handler {
	if deps.Recorder == nil {
		deps.Recorder = localcall.NoRecorder{}
	}
	return &Handler{deps}
}

// ServeInvite implements sip.Handler.
func (h *Handler) ServeInvite(ctx context.Context, invite *sip.Invite) {
	err := h.serve(ctx, invite)
	if err != nil && ctx.Err() == nil {
		cause := rejectCause(err)
		h.deps.Log.InfoContext(ctx, "call to an AI provider refused", "cause", string(cause), "error", err)
		if err := invite.Reject(cause); err != nil {
			h.deps.Log.WarnContext(ctx, "a call to an AI provider could not be refused", "error", err)
		}
	}
}

// serve handles one call. It returns an error only if the call was not answered.
func (h *Handler) serve(ctx context.Context, invite *sip.Invite) error {
	caller := invite.Caller()
	if caller.UserID != "" {
		leave, err := h.deps.Admission.Admit(ctx, caller, invite.Source().Addr())
		if err != nil {
			return &sip.Failure{Cause: sip.FacilityRejected} // 403
		}
		defer leave()
	}

	provider, err := h.findProvider(ctx, invite)
	if err != nil {
		return err
	}

	recordingAccount := cmp.Or(caller.AccountID, provider.AccountID)
	h.deps.Recorder.PrepareRecording(recordingAccount)
	port, err := h.deps.Ports.Open()
	if err != nil {
		return err
	}
	defer port.Close()

	m, answer, err := negotiate(port, invite, provider.Format.Encoding, h.deps.Encryption)
	if err != nil {
		return err
	}

	if err := invite.Ring(); err != nil {
		return err
	}

	request := newRequest(invite, provider, m.format)
	session, err := h.deps.Sessions.Open(ctx, request)
	if err != nil {
		return err
	}

	m.session = session
	agreed := m.agreedMedia // a new offer changes it, from the answer on
	m.recording = h.deps.Recorder.Record(localcall.RecordedCall{
		AccountID: recordingAccount, CallID: invite.CallID(), Direction: "inbound",
		Port:         port,
		CallerNumber: request.Caller, CalleeNumber: request.Callee,
	})
	defer m.recording.End()

	leg, err := invite.Answer(answer, m.answerReinvite)
	if err != nil {
		session.Close(aiprotocol.OriginatorCancel)
		return err
	}

	pcm := m.recording.Announcement()
	if pcm != nil {
		announce(ctx, leg, port, agreed.Codecs[0], pcm)
	}

	// After the announcement: the provider hears none of what the caller says meanwhile.
	defer port.SetReceiver(nil)
	port.SetReceiver(m)
	m.recording.Begin(agreed)

	call := &call{media: m, hangup: leg.Hangup}
	refer := call.newReferTransfer(leg)
	call.dialTransfer = func(ctx context.Context, destination string) error {
		if err := h.deps.Admission.AdmitTransfer(ctx, invite.Caller(), provider.AccountID, destination); err != nil {
			return err
		}
		return refer(ctx, destination)
	}

	go func() { // ends with the leg, which ends with the session
		<-leg.Done()
		if !call.referring.Load() {
			session.CallEnded(string(leg.Cause()))
		}
	}()

	session.Run(context.WithoutCancel(ctx), call)
	return nil
}

// announce plays samples to the caller until they or the call end.
func announce(ctx context.Context, leg *sip.Leg, port *rtp.Port, codec sip.NegotiatedCodec, pcm []int16) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	go func() { // ends with the announcement
		select {
		case <-leg.Done():
			cancel()
		case <-ctx.Done():
		}
	}()

	localcall.Announce(ctx, port, codec, pcm)
}

// findProvider returns the provider that is called. The error is fault.NotFound for a provider that the
// caller may not see.
func (h *Handler) findProvider(ctx context.Context, invite *sip.Invite) (aiprovider.Provider, error) {
	return h.findVisible(ctx, strings.TrimPrefix(invite.User(), localcall.Prefix), invite.Caller().AccountID)
}

// findVisible returns a provider that users of callerAccount may call.
func (h *Handler) findVisible(ctx context.Context, id, callerAccount string) (aiprovider.Provider, error) {
	p, err := h.deps.Providers.Open(ctx, id)
	if err == nil && !h.deps.MayCall(callerAccount, p.AccountID) {
		err = fault.NotFound("AI provider not found")
	}
	return p, err
}

// Bounds of the X-* headers that a provider gets.
const (
	maxParameters     = 32
	maxParameterBytes = 256 // of a name, and of a value
)

func newRequest(invite *sip.Invite, p aiprovider.Provider, format audio.Format) aisession.Request {
	caller, callee := invite.From().User, invite.To().User
	own := invite.Caller()
	if own.UserID != "" {
		caller = own.Extension
	} else { // trusted network
		asserted := headerUser(invite.Header("P-Asserted-Identity"))
		if asserted != "" {
			caller = asserted
		}
		callee = dialledNumber(invite, callee)
	}

	return aisession.Request{
		Provider: p, Ingress: aisession.IngressSIP, Format: format, RTPTimestamps: true,
		Call:   aiprotocol.Call{CallID: invite.CallID(), OtherLegCallID: invite.Header("X-Other-Leg-Call-ID")},
		Caller: caller, Callee: callee, Parameters: invite.CustomHeaders(maxParameters, maxParameterBytes),
	}
}

// rejectCause returns the cause with which an INVITE is refused for an error.
func rejectCause(err error) sip.Cause {
	var failure *sip.Failure
	if errors.As(err, &failure) {
		return failure.Cause
	}

	switch fault.KindOf(err) {
	case fault.KindNotFound:
		return sip.UnallocatedNumber // 404
	case fault.KindUnsupported:
		return sip.IncompatibleDestination // 488
	case fault.KindLimited:
		return sip.SwitchCongestion // 503
	case fault.KindRefused:
		return sip.DestinationOutOfOrder // 502
	}

	return sip.NormalTemporaryFailure // 503
}
