// Package pcmsocket is the ingress for FreeSWITCH's audio-stream modules: a
// WebSocket with 16-bit PCM in both directions (docs/ai.md).
//
//	client  one text frame {callId, otherLegCallId?, callerIdNumber?, calleeIdNumber?, sampleRate?}
//	        then binary frames of samples, any size, and {"event":"dtmf","dtmf":{"digit","duration"}}
//	server  binary frames of 20 ms
//
// Asterisk's chan_websocket begins with MEDIA_START (asterisk_control.go), and mod_audio_fork
// gets playAudio messages (audio_fork.go).
//
// Package api checks the credentials before the upgrade. Sending DTMF is unsupported, and
// transfers are the platform's (aisession.Platform). The close code gives the end of the
// call: 1000 with "hangup" and the cause, 1000 with "return" if the call returns
// to its dialplan, 1013 if no session was available, 1011 if the provider refused,
// 1008 and 1003 for a client that violates the protocol above.
//
// Goroutines: the request's goroutine runs the session, one reads and one writes
// frames. All end with the connection. Reading begins before the session is open,
// so that a client that disconnects ends the attempts to reach the provider. While the client does not read, the
// oldest frames are dropped, and a write that blocks for writeTimeout ends the
// call.
package pcmsocket
