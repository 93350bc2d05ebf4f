package aisession

import (
	"context"
	"regexp"
	"time"

	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/telephony/audio"
)

// Call is one call, as its ingress presents it to the session.
type Call interface {
	// Play sends the next 20 ms of audio to the caller, in the call's format. It must not block or
	// keep frame. It is called every 20 ms.
	Play(frame []byte)
	// Press plays a key's tone to the caller. It may block while the tone is sent.
	Press(ctx context.Context, digit byte, duration time.Duration) error
	// Transfer transfers the call. After it returns nil, the session no longer controls the call.
	Transfer(ctx context.Context, destination string) error
	// Release ends the session's part in the call. It is called once, including when the call itself
	// has ended, but not after a transfer.
	Release(Ending)
}

// Ending is the reason a session ended and what happens to the call.
type Ending struct {
	Reason   Reason
	Cause    string // hangup.reason as in docs/ai.md, such as NORMAL_CLEARING
	HandBack bool   // return the call to where it came from instead of hanging it up
}

// Reason is the reason a session ended. The set is bounded: reasons are used in metrics and events.
type Reason string

// The reasons.
const (
	CallerHungUp     Reason = "caller_hangup"
	ProviderHungUp   Reason = "provider_hangup"    // at the provider's request (extension)
	Transferred      Reason = "transferred"        // at the provider's request (extension)
	ProviderLost     Reason = "provider_lost"      // no connection for longer than Settings.GiveUp
	ProviderRefused  Reason = "provider_refused"   // an answer for which a retry is of no use
	ProviderTooLarge Reason = "provider_too_large" // a message above the limit
	ProviderSilent   Reason = "provider_silent"    // no audio for Settings.SilenceTimeout
	Drained          Reason = "drained"            // this process is shutting down
	Faulted          Reason = "internal_error"     // a panic in the session
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{CallerHungUp, ProviderHungUp, Transferred, ProviderLost, ProviderRefused, ProviderTooLarge, ProviderSilent, Drained, Faulted}
}

// Request has the parameters of a session.
type Request struct {
	Provider aiprovider.Provider
	Ingress  string // one of Ingresses
	Call     aiprotocol.Call
	Caller   string       // number as received by the ingress
	Callee   string       // number that was dialled to reach the provider, as received
	Format   audio.Format // of the call, in both directions
	// Clocked means that the timestamps given to ReceiveAudio measure time (RTP). Otherwise they count the
	// samples sent so far.
	Clocked bool
}

// The ingresses, used as the metric label "way".
const (
	IngressSIP         = "sip"
	IngressAudioSocket = "audiosocket"
	IngressPCMSocket   = "pcmsocket"
	IngressTest        = "test"
)

// Ingresses returns all ingresses.
func Ingresses() []string {
	return []string{IngressSIP, IngressAudioSocket, IngressPCMSocket, IngressTest}
}

var causeName = regexp.MustCompile(`^[A-Z0-9_]{1,64}$`)

// Cause returns the hangup.reason of a call's end. It maps the names of other switches for NO_ANSWER,
// CALL_REJECTED and ORIGINATOR_CANCEL to these and leaves other causes unchanged. It returns
// NORMAL_CLEARING for a name that is not a cause.
func Cause(name string) string {
	switch name {
	case "NO_USER_RESPONSE", "ALLOTTED_TIMEOUT", "PROGRESS_TIMEOUT":
		return aiprotocol.NoAnswer
	case "USER_CHALLENGE", "CALL_REJECTED_BY_USER", "OUTGOING_CALL_BARRED", "INCOMING_CALL_BARRED":
		return aiprotocol.CallRejected
	case "LOSE_RACE", "PICKED_OFF", "ORIGINATOR_CANCELLED":
		return aiprotocol.OriginatorCancel
	case "USER_NOT_REGISTERED":
		return "SUBSCRIBER_ABSENT"
	}
	if !causeName.MatchString(name) {
		return aiprotocol.NormalClearing
	}
	return name
}
