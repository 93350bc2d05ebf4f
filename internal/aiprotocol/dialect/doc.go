// Package dialect has the protocols of AI providers: how a session's messages are
// written in each, and how what a provider writes is read as the messages of package
// aiprotocol (docs/ai.md).
//
// If this is your first change, read dialect.go, which has the interface, then
// trunkline.go, the plainest. A new protocol is one file and a line in Protocols.
//
//	session ─ aiprotocol.Message ─▶ Encode ─▶ frames ─▶ provider
//	session ◀─ aiprotocol.Message ─ Decode ◀─ frames ◀─ provider
//
// A dialect has no clock, no socket and no call: pacing, reconnection, fallback,
// barge-in, marks and transfers are the session's (package aisession). It has the state
// of one connection only, such as the number of the next message. No goroutines; a
// dialect whose Decode and Encode share state has a lock for it.
//
// The session object of a provider goes to the vendor as it is, but for the audio
// formats. Functions named transfer and hangup, which the operator declares in it,
// are requests of the provider; other functions are refused.
//
// # Files
//
//   - dialect.go: the interface, the list of protocols
//   - trunkline.go, twilio.go, openai.go, deepgram.go: one protocol each
//   - model_function.go, session_object.go: functions that a model calls; the session object with our formats
package dialect
