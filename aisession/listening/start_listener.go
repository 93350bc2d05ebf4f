package listening

import (
	"context"

	"github.com/google/uuid"

	"trunkline/aisession"
	"trunkline/audit"
	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
	"trunkline/internal/redisclient"
	"trunkline/telephony/localcall"
)

// Deps has the dependencies of Listeners.
type Deps struct {
	Sessions  *aisession.Service // nil: this process listens to no calls, and asks others
	Providers aisession.Providers
	// MayUse reports whether providers of the second account may listen to calls of the first.
	MayUse func(accountID, providerAccountID string) bool
	Nodes  *redisclient.HolderRequests[StartRequest] // nil: this node is the only one
	// Platform has the calls that Trunkline does not connect; nil: nobody listens to these.
	Platform aisession.Platform
	Audit    *audit.Log
}

// Listeners has providers listen to calls in progress. It implements localcall.Recorder. It is safe for concurrent use.
type Listeners struct {
	deps  Deps
	calls localcall.Calls[*liveCall]
}

// New returns Listeners without calls.
func New(deps Deps) *Listeners {
	return &Listeners{deps: deps}
}

// PrepareRecording implements localcall.Recorder: a listener needs nothing before.
func (l *Listeners) PrepareRecording(string) {}

// Record implements localcall.Recorder.
func (l *Listeners) Record(call localcall.RecordedCall) localcall.Recording {
	c := &liveCall{RecordedCall: call, listeners: l, listenerOf: make(map[string]*listener)}
	l.calls.Add(c)
	return c
}

// StartRequest has a provider listen to an account's call in progress, by a session with the id SessionID.
type StartRequest struct {
	AccountID  string `json:"account_id"`
	CallID     string `json:"call_id"`
	ProviderID string `json:"provider_id"`
	SessionID  string `json:"session_id"`
}

// StartListener has a provider listen to an account's call in progress, of any node or of a platform, with an entry of
// the audit log, and returns the id of the session. Errors are fault.KindNotFound for a call or a provider that the
// account does not have, fault.KindInvalid for a provider of another mode, fault.KindConflict if the provider hears
// the call already or the call is not connected, those of aisession.Service.Open and of Platform.AddListener, and
// fault.KindUnavailable if a node does not answer.
func (l *Listeners) StartListener(ctx context.Context,
	accountID, callID, providerID string) (sessionID string, err error) {
	start := StartRequest{AccountID: accountID, CallID: callID, ProviderID: providerID, SessionID: uuid.NewString()}
	entry := l.deps.Audit.Entry(ctx, audit.CallMonitor, accountID, "call:"+callID+" ai_provider:"+providerID)
	err = l.deps.Audit.Act(ctx, &entry, func() error {
		err := l.startHere(ctx, start)
		if fault.KindOf(err) == fault.KindNotFound && l.deps.Nodes != nil {
			err = l.deps.Nodes.Ask(ctx, start, err)
		}
		return err
	})
	if fault.KindOf(err) == fault.KindNotFound && l.deps.Platform != nil {
		err = l.startOnPlatform(ctx, start)
	}

	return start.SessionID, err
}

// startOnPlatform is StartListener for a call of a platform. The entry is that of the action on the call.
func (l *Listeners) startOnPlatform(ctx context.Context, start StartRequest) error {
	unknown := fault.NotFound("there is no such call in progress, or no such AI provider")
	_, err := l.openProvider(ctx, start)
	if fault.KindOf(err) == fault.KindNotFound {
		return unknown
	}
	if err != nil {
		return err
	}

	err = l.deps.Platform.AddListener(ctx, aisession.PlatformCall{AccountID: start.AccountID,
		ProviderID: start.ProviderID, Call: aiprotocol.Call{CallID: start.CallID}},
		aisession.ListenRequest{SessionID: start.SessionID})
	if fault.KindOf(err) == fault.KindNotFound {
		return unknown
	}

	return err
}

// openProvider returns the provider of a start.
func (l *Listeners) openProvider(ctx context.Context, start StartRequest) (aiprovider.Provider, error) {
	provider, err := l.deps.Providers.Open(ctx, start.ProviderID)
	if err == nil && !l.deps.MayUse(start.AccountID, provider.AccountID) {
		err = fault.NotFound("AI provider not found")
	}
	if err == nil && !provider.Listens {
		err = fault.InvalidField("provider_id", "unsupported", "the provider's mode must be listen")
	}
	return provider, err
}

// Run begins the listeners that other nodes ask for, until ctx ends.
func (l *Listeners) Run(ctx context.Context) error {
	l.deps.Nodes.Answer(ctx, l.startHere)
	return nil
}

// startHere is StartListener for the calls of this node, without the entry.
func (l *Listeners) startHere(ctx context.Context, start StartRequest) (err error) {
	c := l.calls.Find(start.AccountID, start.CallID)
	if c == nil {
		return fault.NotFound("there is no such call in progress")
	}

	provider, err := l.openProvider(ctx, start)
	if err != nil {
		return err
	}

	added := &listener{}
	request, err := c.reservePlace(provider, added)
	if err != nil {
		return err
	}

	request.SessionID = start.SessionID
	defer func() {
		if err != nil {
			c.freePlace(provider.ID)
		}
	}()

	session, err := l.deps.Sessions.Open(ctx, request)
	if err != nil {
		return err
	}

	if !c.begin(added, session) {
		session.Close(aiprotocol.OriginatorCancel)
		return fault.Conflict("the call has ended")
	}

	go func() { // ends with the session, which ends with the call
		session.RunRecovered(func() { session.Run(context.WithoutCancel(ctx), added) })
		c.Port.RemoveTap(added)
		c.freePlace(provider.ID)
	}()

	return nil
}
