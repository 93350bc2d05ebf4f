package app

import (
	"context"

	"trunkline/aisession"
	"trunkline/audit"
	"trunkline/control"
	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
)

// platformControl implements aisession.Platform by the actions of package control: a provider acts as an
// administrator of its account on its own call.
type platformControl struct {
	tree    func() *identity.Tree
	control actionService // nil until it is built, and without feeds
}

// actionService does actions on calls; *control.Service implements it.
type actionService interface {
	// Act does an action and returns its id once the platform has taken it. The error is fault.KindNotFound for a
	// call that no feed knows.
	Act(ctx context.Context, r control.Request) (id string, err error)
}

// Transfer implements aisession.Platform.
func (p *platformControl) Transfer(ctx context.Context, c aisession.PlatformCall, destination string) error {
	return p.request(ctx, c, feed.ActionTransfer, destination)
}

// Hangup implements aisession.Platform.
func (p *platformControl) Hangup(ctx context.Context, c aisession.PlatformCall) error {
	return p.request(ctx, c, feed.ActionHangup, "")
}

// AddListener implements aisession.Platform.
func (p *platformControl) AddListener(ctx context.Context, c aisession.PlatformCall, h aisession.ListenRequest) error {
	account, known := p.tree().Account(c.AccountID)
	if p.control == nil || !known {
		return errNoPlatformCall()
	}

	request := control.Request{Caller: asProvider(c, account), Account: account, CallID: c.CallID,
		Action:        feed.ActionAddListener,
		ListenRequest: control.ListenRequest{ProviderID: c.ProviderID, SessionID: h.SessionID}}

	if h.ByRule {
		// Every node has the rule and asks: of actions with one key the first is done.
		request.ByRule, request.Key = true, "hear "+c.CallID
		ctx = audit.WithCaller(ctx, audit.Caller{Actor: request.Caller.KeyID})
	}

	_, err := p.control.Act(ctx, request)
	return err
}

func errNoPlatformCall() error {
	return fault.NotFound("no feed knows the call: give its id as callId or otherLegCallId")
}

// asProvider returns the provider of a call as the caller of an action: an administrator of its account.
func asProvider(c aisession.PlatformCall, account identity.Account) *identity.Principal {
	return &identity.Principal{KeyID: "ai_provider:" + c.ProviderID, AccountID: account.ID, Role: identity.RoleAdmin}
}

// request asks for an action on the caller's leg, which is the other one where the call's own is
// only that of the audio.
func (p *platformControl) request(ctx context.Context, c aisession.PlatformCall, action feed.Action,
	destination string) error {
	account, known := p.tree().Account(c.AccountID)
	if p.control == nil || !known {
		return errNoPlatformCall()
	}

	caller := asProvider(c, account)
	ctx = audit.WithCaller(ctx, audit.Caller{Actor: "ai_provider:" + c.ProviderID})
	for _, id := range []string{c.OtherLegCallID, c.CallID} {
		if id == "" {
			continue
		}

		_, err := p.control.Act(ctx,
			control.Request{Caller: caller, Account: account, CallID: id, Action: action, Destination: destination,
				ServesCall: true})
		if fault.KindOf(err) != fault.KindNotFound {
			return err
		}
	}

	return errNoPlatformCall()
}
