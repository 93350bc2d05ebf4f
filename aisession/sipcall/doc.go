// Package sipcall is the ingress for SIP and RTP: a call to sip:ai-<provider id>@… (docs/ai.md).
//
// An INVITE is answered after the start message was sent to the provider; until then the call rings.
// The codec is the one of PCMU, PCMA and opus with the cheapest conversion to the provider's format.
// DTMF is received as telephone-event.
//
// A phone whose user may not see the provider's account is refused as if the provider did not exist. A
// transfer is a REFER to the caller; for a call coming from our own PBX (origination/pbx), the PBX
// transfers it (localcall.Call). A call that returns to its dialplan ends with
// NORMAL_TEMPORARY_FAILURE, so that the PBX's dialplan can continue from there. Other calls end with
// their cause.
//
// Goroutines: the goroutine of each INVITE runs its session, and one more waits for the end of the
// leg. Both end with the leg or the session, whichever ends first.
package sipcall
