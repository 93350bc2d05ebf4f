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
// Goroutines: on Linux one loop reads the sockets of all open ports, and
// several where there are very many; it starts with the first port and ends
// with the last one's Close. Elsewhere each open Port has a reader, ended by its
// Close. A Receiver is called there, and what it does delays the packets of
// other legs too: it may not wait. Stream.Run and Stream.Press work in their
// caller's. Nothing queues: a packet is handed on when it is read, or dropped,
// but the loop rests for a millisecond between looking at its sockets, so that
// a packet of a busy node waits that long at most. When the range has no port
// left, Ports.Open says so with fault.KindUnavailable.
//
// Lock order: Ports.mu, readers.mu, loop.mu; and Port.receiving, then Stream.mu,
// then Port.out of any port. Close takes none of the first while it waits for
// the second. Neither Receive nor Close may be called from within a Receiver of the port.
package rtp
