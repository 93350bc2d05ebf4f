// Package sipcall is the ingress by SIP and RTP: a call to
// sip:ai-<provider id>@… .
//
// An invitation is answered once its provider has been told of the call; until
// then it rings. The codec is the one that costs the provider's format least,
// of PCMU, PCMA and opus; keys come by telephone-event.
//
// It refuses a phone whose user may not see the provider's account, as if there
// were no such provider. A transfer is a REFER to the caller; telephony/pbx transfers a call that it
// handed over itself (localcall.Call). A call that is handed back ends with
// NORMAL_TEMPORARY_FAILURE, so that the PBX's dialplan can go on from there; other
// calls end with their cause.
//
// Goroutines: each invitation's runs its session, and one waits for the leg's
// end. They end with the leg or the session, whichever ends first; both end with
// the process.
package sipcall
