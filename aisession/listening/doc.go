// Package listening has AI providers of the mode listen listen to calls that this process connects between
// others: Listeners.StartListener, for POST /api/v2/calls/{id}/listeners (docs/ai.md).
//
//	phone ⇄ rtp.Port ⇄ phone, or an AI session
//	           │ taps: a recording's, and one per listener
//	           └▶ aisession.Session, two tracks ─▶ provider ─▶ transcripts ─▶ call.transcript
//
// Listeners knows the calls as their recorder does (localcall.Recorder), and asks the other nodes where it does not
// know one. A call of a platform is listened to by what the platform then sends to the media WebSocket
// (aisession.Platform). QueueRules does so for every call of the queues that providers name; Run is its one goroutine.
//
// A listener has one goroutine, which runs its session and ends with it: at the latest when the call ends, or the
// process drains. At most maxListeners listen to one call that this process connects. A provider that is lost or slow
// costs the call nothing: a tap only copies a packet into the session's jitter buffer.
//
// Locks: liveCall.mu is not held while a session is opened or the list of calls is changed.
package listening
