// Package aisession connects calls to AI providers: one Session for one call,
// whatever way the call came in (specification, section D).
//
// If this is your first change, read call.go (what a way in brings), session.go
// (a session's life) and tick.go (what happens every 20 ms).
//
//	call ─Heard─▶ jitter ─▶ path ─┐        ┌─▶ outbox ─▶ socket ─▶ provider
//	                              ├─ tick ─┤
//	call ◀─Play── path ◀─ playout ┘        └── reader ◀─ socket ◀─ provider
//
// A tick comes every 20 ms on absolute deadlines: it reads what the provider has
// sent, takes one frame of that, silence where there is none, to the call, and
// one frame of the caller's audio, concealed where it is missing, to the
// provider. Neither direction waits for the other, nor the tick for any socket:
// a provider's is taken from Go's poller after the handshakes and never blocks.
// Nothing is lost by reading at ticks only, for what comes between two is not
// played before the second; and it costs a call one thread's work in place of
// three goroutines' wake-ups for each frame.
//
// It refuses to know SIP, Asterisk or FreeSWITCH: the folders below do. A
// provider that did not opt in to extensions gets not one message more than the
// specification has; what it sends that is no message of the protocol is
// counted and ignored.
//
// # Goroutines and who stops them
//
//   - one wheel of the pacer for each core, which naps in the kernel while it has
//     sessions, one that publishes events, one that keeps the
//     accounts' places: Run, when its context ends and the sessions have;
//   - none for a session's socket: the pacer ticks it from its handshake until
//     it is closed, at the latest lingerLimit after its farewell;
//   - where the provider may ask for things, one that does them: ends with the
//     session;
//   - Session.Run is its caller's.
//
// # When it is full
//
//   - more sessions than the node or the account may have: Open refuses;
//   - a provider that does not read: its outbox drops the oldest audio beyond
//     two seconds, and the connection is given up when a write hangs;
//   - a provider that sends more than Config.PlayoutLimit ahead: the newest is
//     dropped; of one that sends faster than readATick in 20 ms, TCP holds back
//     the rest;
//   - junk from a provider: beyond a rate nothing is read for a while (flood.go);
//   - a caller's packets: audio.Jitter drops the oldest;
//   - events: beyond a thousand that wait for Kafka they are dropped, counted.
//
// # Lock order
//
// Session.ticking, wheel.mu, playout.mu, outbox.mu, link.mu, Service.mu: none is
// held while another is taken, but Session.ticking, which may be held when any
// other is. What of a link and a socket has no lock is the ticks' own.
package aisession
