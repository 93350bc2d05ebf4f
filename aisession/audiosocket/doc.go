// Package audiosocket is the ingress for Asterisk: its AudioSocket protocol over
// TCP, for calls that were announced by their UUID (contract, section D).
//
// A message is a kind of one byte, a length of two, and so much payload. The
// first one names the call; then audio comes and goes, key presses come, and
// either side may hang up. The kind of a message of audio says its rate. The session
// has that of the first, for which it waits a little, and else 8 kHz: Asterisk
// is silent while the caller is. Audio of another kind later is resampled, and
// what is played follows it.
//
// It refuses every call that nobody announced, and TLS: the listener is for a
// network that only the PBX is on. It can neither press keys nor transfer for a
// provider. A call that is hung up and one that is handed back look the same to
// Asterisk: its dialplan goes on behind AudioSocket().
//
// Goroutines: Run accepts; each connection has one that reads, one that writes
// and one that runs its session. They end with the connection; the connections
// end with their sessions, or at once when Run ends before they have one. When
// there are more than Config.MaxConnections, a new one is closed; when Asterisk
// does not read, the oldest frames are dropped, and a write that hangs for
// writeLimit ends the call.
package audiosocket
