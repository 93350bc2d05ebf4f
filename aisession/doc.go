// Package aisession connects calls to AI providers: one Session for one call,
// whichever ingress it came by (specification, section D). The ingresses are the
// folders sipcall, audiosocket and pcmsocket.
//
// If this is your first change, read call.go (what an ingress provides), session.go
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
// a provider's socket is taken from Go's poller after the handshakes and never
// blocks. Reading at ticks only adds no delay, as audio that comes between two ticks
// is not played before the second; and it costs a call the work of one thread
// instead of three goroutine wake-ups for each frame.
//
// It refuses to know SIP, Asterisk or FreeSWITCH: the ingresses do. A provider that
// did not opt in to extensions gets only the messages of the specification; messages
// of a provider that are not of the protocol are counted and ignored.
//
// # Goroutines and who stops them
//
//   - one wheel of the pacer for each core, which sleeps in the kernel while it
//     has sessions, one that publishes events, one that renews the session leases:
//     Run stops them when its context and the sessions have ended;
//   - none for a session's socket: the pacer ticks it from its handshake until
//     it is closed, at the latest lingerLimit after its close frame;
//   - one that carries out the requests of a provider with extensions: ends with
//     the session;
//   - Session.Run works in its caller's goroutine.
//
// # When it is full
//
//   - more sessions than the node or the account may have: Open refuses;
//   - a provider that does not read: its outbox drops the oldest audio beyond
//     two seconds, and the connection is given up when a write hangs;
//   - a provider that sends more than Config.PlayoutLimit ahead: the newest is
//     dropped; of one that sends faster than readATick in 20 ms, TCP holds back
//     the rest;
//   - invalid messages of a provider: over a rate nothing is read for a while
//     (flood.go);
//   - a caller's packets: audio.Jitter drops the oldest;
//   - events: beyond a thousand that wait for Kafka they are dropped, counted.
//
// # Lock order
//
// Session.ticking, wheel.mu, playout.mu, outbox.mu, link.mu, Service.mu: none is
// held while another is taken, but Session.ticking, which may be held when any
// other is. What of a link and a socket has no lock is the ticks' own.
package aisession
