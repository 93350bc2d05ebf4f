package aisession

import (
	"context"
	"time"

	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
)

// Platform acts on calls over the connection to the platform that has them. Errors are fault.KindNotFound for a call
// that it does not know, fault.KindRefused with the platform's words, and fault.KindUnavailable.
type Platform interface {
	// Transfer sends the call to a destination. It returns when the platform has taken it.
	Transfer(ctx context.Context, c PlatformCall, destination string) error
	// Hangup ends the call.
	Hangup(ctx context.Context, c PlatformCall) error
	// AddListener has the provider listen to the call: the platform sends both voices to the media WebSocket. It
	// returns when the platform has taken it. The error is fault.KindConflict while nobody talks, or for a platform
	// that cannot.
	AddListener(ctx context.Context, c PlatformCall, r ListenRequest) error
}

// ListenRequest is a request that a provider listens to a platform's call.
type ListenRequest struct {
	SessionID string // of the session to open when the audio comes
	ByRule    bool   // of a queue, which asks once for each call, on whatever node; else somebody asks
}

// PlatformCall names a call of an account, and the provider that acts on it.
type PlatformCall struct {
	AccountID  string
	ProviderID string
	aiprotocol.Call
}

// platformTimeout is the time for which a hangup waits for the platform.
const platformTimeout = 5 * time.Second

// transferCall transfers the call, by the platform where its ingress cannot.
func (s *Session) transferCall(ctx context.Context, call Call, destination string) error {
	err := call.Transfer(ctx, destination)
	platform := s.service.deps.Platform
	if platform == nil || fault.KindOf(err) != fault.KindUnsupported || s.testCall != nil {
		return err
	}
	return platform.Transfer(ctx, s.callOnPlatform(), destination)
}

// hangUpPlatform ends the call that a provider has ended, where its ingress only takes the audio.
func (s *Session) hangUpPlatform() {
	platform := s.service.deps.Platform
	streamed := s.request.Ingress == IngressPCMSocket || s.request.Ingress == IngressAudioSocket
	if platform == nil || !streamed || s.request.Listens || s.ending.Reason != ProviderHungUp ||
		s.ending.ReturnToDialplan {
		return
	}

	ctx, cancel := context.WithTimeout(context.Background(), platformTimeout)
	defer cancel()

	err := platform.Hangup(ctx, s.callOnPlatform())
	if err != nil && fault.KindOf(err) != fault.KindNotFound {
		s.log.InfoContext(ctx, "the platform did not end the call that the AI provider has ended", "error", err)
	}
}

func (s *Session) callOnPlatform() PlatformCall {
	r := &s.request
	return PlatformCall{AccountID: r.Provider.AccountID, ProviderID: r.Provider.ID, Call: r.Call}
}
