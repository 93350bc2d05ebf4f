// Package audiosocket is the ingress for Asterisk: it serves Asterisk's AudioSocket protocol over TCP,
// for calls that were announced by UUID (docs/ai.md), or whose UUID a dialplan signed with a provider's
// secret (docs/asterisk.md).
//
// A message is one byte of kind, two bytes of length, and the payload. The first message has the
// call's UUID. Audio then flows both ways, Asterisk sends key presses, and either side may hang up.
// The kind of an audio message gives its rate. The session uses the rate of the first audio message,
// for which the server waits up to rateTimeout, and 8 kHz otherwise, because Asterisk sends nothing
// while the caller is silent. Later audio of another rate is resampled, and playback changes to that
// rate.
//
// Other calls are refused. TLS is not supported: the listener must be reachable by the PBX only. Sending
// DTMF and transfers are unsupported. Asterisk cannot distinguish a hang-up from a call that returns to
// its dialplan; in both cases its dialplan continues after AudioSocket().
//
// Goroutines: Run accepts connections, and each connection has one goroutine that reads, one that
// writes and one that runs its session. They end with the connection. A connection ends with its
// session, or at once if Run ends before it has one; a hang-up ends the attempts to reach the provider.
// Above Config.MaxConnections a new connection is
// closed. While Asterisk does not read, the oldest frames are dropped, and a write that blocks for
// writeTimeout ends the call.
package audiosocket
