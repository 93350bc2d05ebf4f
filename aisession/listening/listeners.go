package listening

import (
	"context"

	"trunkline/aisession"
	"trunkline/audit"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
	"trunkline/telephony/localcall"
)

// Deps has the dependencies of Listeners.
type Deps struct {
	Sessions  *aisession.Service
	Providers aisession.Providers
	// MayUse reports whether calls of the first account may be heard by providers of the second.
	MayUse func(accountID, providerAccountID string) bool
	Audit  *audit.Log
}

// Listeners has providers hear calls in progress. It implements localcall.Recorder. It is safe for concurrent use.
type Listeners struct {
	deps  Deps
	calls localcall.Calls[*liveCall]
}

// New returns Listeners without calls.
func New(deps Deps) *Listeners {
	return &Listeners{deps: deps}
}

// ReadAhead implements localcall.Recorder: a listener needs nothing before.
func (l *Listeners) ReadAhead(string) {}

// Record implements localcall.Recorder.
func (l *Listeners) Record(call localcall.RecordedCall) localcall.Recording {
	c := &liveCall{RecordedCall: call, listeners: l, heardBy: make(map[string]*listener)}
	l.calls.Add(c)
	return c
}

// StartListener has a provider hear an account's call in progress in this process, with an entry of the audit log, and
// returns the id of the session. Errors are fault.KindNotFound for a call or a provider that the account does not
// have, fault.KindInvalid for a provider of another mode, fault.KindConflict if the provider hears the call already
// or the call is not connected, and those of aisession.Service.Open.
func (l *Listeners) StartListener(ctx context.Context,
	accountID, callID, providerID string) (sessionID string, err error) {
	c := l.calls.Find(accountID, callID)
	if c == nil {
		return "", fault.NotFound("there is no such call in progress on this node")
	}
	provider, err := l.deps.Providers.Open(ctx, providerID)
	if err == nil && !l.deps.MayUse(accountID, provider.AccountID) {
		err = fault.NotFound("AI provider not found")
	}
	if err != nil {
		return "", err
	}
	if !provider.Listens {
		return "", fault.InvalidField("provider_id", "unsupported", "the provider's mode must be listen")
	}

	heard := &listener{}
	request, err := c.reserve(provider, heard)
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			c.freeProvider(provider.ID)
		}
	}()
	entry := l.deps.Audit.Entry(ctx, audit.CallMonitor, accountID, "call:"+c.CallID+" ai_provider:"+provider.ID)
	if err := l.deps.Audit.Record(ctx, entry); err != nil {
		return "", err
	}
	session, err := l.deps.Sessions.Open(ctx, request)
	if err != nil {
		return "", err
	}
	if !c.begin(heard, session) {
		session.Close(aiprotocol.OriginatorCancel)
		return "", fault.Conflict("the call has ended")
	}
	go func() { // ends with the session, which ends with the call
		session.RunRecovered(func() { session.Run(context.WithoutCancel(ctx), heard) })
		c.Port.RemoveTap(heard)
		c.freeProvider(provider.ID)
	}()
	return session.ID(), nil
}
