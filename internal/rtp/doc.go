// Package rtp moves the audio of calls: UDP ports of a bounded range, a relay
// that copies packets between two of them, and streams for whoever wants the
// media itself.
//
// A Port is one call leg's socket. It sends as one RTP source for its whole
// life: whatever feeds it (a tone, the other leg, an AI session), the peer sees
// one SSRC, sequence numbers without a gap and timestamps that go on. It takes
// packets from where the peer's SDP said, or from the first port of the SDP's
// host (or of the host that signals) that sends a valid packet; what strangers
// send is counted and dropped.
//
// The package refuses to know codecs, but for G.711, whose two laws it turns
// into each other by table so that any two phones that speak G.711 can talk. It
// answers no RTCP and has no jitter buffer: a relay passes jitter on to the
// phone, which has one, and a stream's reader decides for itself.
//
// Goroutines: one reader for each open Port, ended by Port.Close, which waits
// for it. A Receiver is called on that goroutine, one packet at a time, and
// what it does there delays the leg's next packet. Stream.Run and Stream.Press
// work in their caller's. Nothing queues: a packet is handed on when it comes,
// or dropped. When the range has no port left, Ports.Open says so with
// fault.KindUnavailable.
//
// Lock order: Port.receiving, then Stream.mu, then Port.out of any port.
// Neither Receive nor Close may be called from within a Receiver of the port.
package rtp
