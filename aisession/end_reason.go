package aisession

// Ending is the reason a session ended and what happens to the call.
type Ending struct {
	Reason           EndReason
	Cause            string // hangup.reason as in docs/ai.md, such as NORMAL_CLEARING
	ReturnToDialplan bool   // the call continues in its dialplan instead of being hung up
}

// EndReason is the reason a session ended. The set is bounded: reasons are used in metrics and events.
type EndReason string

// The reasons.
const (
	CallerHungUp     EndReason = "caller_hangup"
	ProviderHungUp   EndReason = "provider_hangup"    // at the provider's request (extension)
	Transferred      EndReason = "transferred"        // at the provider's request (extension)
	ProviderLost     EndReason = "provider_lost"      // no connection for longer than Settings.GiveUp
	ProviderRefused  EndReason = "provider_refused"   // a response that is not retried
	ProviderTooLarge EndReason = "provider_too_large" // a message above the limit
	ProviderSilent   EndReason = "provider_silent"    // no audio for Settings.SilenceTimeout
	Drained          EndReason = "drained"            // this process is shutting down
	InternalError    EndReason = "internal_error"     // a panic in the session
)

// EndReasons returns all reasons.
func EndReasons() []EndReason {
	return []EndReason{CallerHungUp, ProviderHungUp, Transferred, ProviderLost, ProviderRefused, ProviderTooLarge,
		ProviderSilent, Drained, InternalError}
}
