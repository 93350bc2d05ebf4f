package aisession

import (
	"context"
	"regexp"
	"time"

	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/telephony/audio"
)

// Call is one call, as its ingress offers it to the session.
type Call interface {
	// Play takes the next 20 ms for the caller, in the call's format. It never
	// waits, and does not keep frame. It is called every 20 ms.
	Play(frame []byte)
	// Press plays a key's tone to the caller. It may wait as long as that takes.
	Press(ctx context.Context, digit byte, duration time.Duration) error
	// Transfer hands the call on. With nil the call is no more the session's.
	Transfer(ctx context.Context, destination string) error
	// Release ends our part in the call. It comes once, unless the call was
	// transferred, also when it was the call that ended.
	Release(Ending)
}

// Ending is why a session ended, and what becomes of the call.
type Ending struct {
	Reason   Reason
	Cause    string // in the specification's words, as NORMAL_CLEARING
	HandBack bool   // the call goes back to where it came from; else it is hung up
}

// Reason says what ended a session. Reasons are bounded: metrics and events
// have them.
type Reason string

// The reasons.
const (
	CallerHungUp     Reason = "caller_hangup"
	ProviderHungUp   Reason = "provider_hangup"    // asked for it (extra)
	Transferred      Reason = "transferred"        // the provider asked for it (extra)
	ProviderLost     Reason = "provider_lost"      // away for longer than Config.GiveUp
	ProviderRefused  Reason = "provider_refused"   // an answer that trying again does not change
	ProviderTooLarge Reason = "provider_too_large" // a message over the limit
	ProviderSilent   Reason = "provider_silent"    // no audio for Config.SilenceTimeout
	Drained          Reason = "drained"            // this process ends
)

// Reasons lists them all.
func Reasons() []Reason {
	return []Reason{CallerHungUp, ProviderHungUp, Transferred, ProviderLost, ProviderRefused, ProviderTooLarge, ProviderSilent, Drained}
}

// Request is what Open needs to know of a call.
type Request struct {
	Provider aiprovider.Provider
	Ingress  string // one of Ingresses
	Call     aiprotocol.Call
	Caller   string       // number, as the ingress has it
	Callee   string       // the same, of what was dialled to reach the provider
	Format   audio.Format // of the call, both ways
	// Clocked says that the timestamps given to Heard tell the time (RTP). Else
	// they count the samples sent so far.
	Clocked bool
}

// The ingresses; label "way" of metrics.
const (
	IngressSIP         = "sip"
	IngressAudioSocket = "audiosocket"
	IngressPCMSocket   = "pcmsocket"
	IngressTest        = "test"
)

// Ingresses lists them all.
func Ingresses() []string {
	return []string{IngressSIP, IngressAudioSocket, IngressPCMSocket, IngressTest}
}

var causeName = regexp.MustCompile(`^[A-Z0-9_]{1,64}$`)

// Cause returns the cause of a call's end as hangup.reason has it: the names that
// switches have for NO_ANSWER, CALL_REJECTED and ORIGINATOR_CANCEL become these,
// and every other cause stays. What is not the name of a cause is
// NORMAL_CLEARING.
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
