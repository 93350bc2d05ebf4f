package aisession

// Ending is the reason a session ended and what happens to the call.
type Ending struct {
	Reason           Reason
	Cause            string // hangup.reason as in docs/ai.md, such as NORMAL_CLEARING
	ReturnToDialplan bool   // the call continues in its dialplan instead of being hung up
}

// Reason is the reason a session ended. The set is bounded: reasons are used in metrics and events.
type Reason string

// The reasons.
const (
	CallerHungUp     Reason = "caller_hangup"
	ProviderHungUp   Reason = "provider_hangup"    // at the provider's request (extension)
	Transferred      Reason = "transferred"        // at the provider's request (extension)
	ProviderLost     Reason = "provider_lost"      // no connection for longer than Settings.GiveUp
	ProviderRefused  Reason = "provider_refused"   // a response that is not retried
	ProviderTooLarge Reason = "provider_too_large" // a message above the limit
	ProviderSilent   Reason = "provider_silent"    // no audio for Settings.SilenceTimeout
	Drained          Reason = "drained"            // this process is shutting down
	InternalError    Reason = "internal_error"     // a panic in the session
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{CallerHungUp, ProviderHungUp, Transferred, ProviderLost, ProviderRefused, ProviderTooLarge, ProviderSilent, Drained, InternalError}
}
