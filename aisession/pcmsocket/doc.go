// Package pcmsocket is the ingress for FreeSWITCH's audio-stream modules: a
// WebSocket on which 16-bit PCM comes and goes (contract, section D).
//
//	client  one text frame {callId, otherLegCallId?, callerIdNumber?, calleeIdNumber?, sampleRate?}
//	        then binary frames of samples, any size, and {"event":"dtmf","dtmf":{"digit","duration"}}
//	server  binary frames of 20 ms
//
// It refuses to check credentials: package api has done that. It can neither
// press keys nor transfer for a provider; the media server is the one to ask.
// The close code says how it ended: 1000 with "hangup" and the cause, 1000 with
// "return" when the call is handed back, 1013 when no session could be had now,
// 1011 when the provider refuses, 1008 and 1003 for a client that does not keep
// to the above.
//
// Goroutines: the request's reads; one writes frames; one runs the session. All
// end with the connection. When the client does not read, the oldest frames are
// dropped, and a write that hangs for writeLimit ends the call.
package pcmsocket
