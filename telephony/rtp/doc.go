// Package rtp carries the audio of calls: UDP ports of a bounded range, a relay that copies packets
// between two of them, and streams for code that sends or receives the media itself.
//
// A Port is one call leg's socket. It sends as one RTP source for its whole life: for all origins (a
// tone, the other leg, an AI session) the peer receives one SSRC, consecutive sequence numbers and
// continuous timestamps. It accepts packets from the address in the peer's SDP, or from the first port
// on the SDP's host (or on the host of its signalling) that sends a valid packet, and from another port
// there when that one has been silent for a second. Packets from other sources are counted and dropped.
//
// A port may be encrypted (SRTP): it then decrypts what it receives and encrypts what it sends, so a relay
// connects encrypted and plain legs alike. SRTCP is dropped like RTCP.
//
// The package has no codecs except G.711, whose two laws it converts into each other by table so that
// any two phones with G.711 can talk. It does not answer RTCP and has no jitter buffer: a relay leaves
// jitter to the phone's buffer, and the reader of a stream has its own.
//
// Goroutines: on Linux one loop reads the sockets of all open ports, and there are several loops for
// many ports. The first loop starts with the first port and ends with the last port's Close. On other
// systems each open Port has a reader that its Close ends. A Receiver is called on these goroutines
// and delays the packets of other legs, so it must not block. Stream.Run and Stream.SendDTMF run in the
// caller's goroutine.
//
// Packets are not queued: each is passed on or dropped when it is read. A loop pauses for a
// millisecond between polls of its sockets, so a packet on a busy node waits at most that long. When
// the range has no free port, Ports.Open returns fault.KindUnavailable.
//
// Lock order: Ports.mu, readers.mu, epollLoop.mu; and Port.receiveMu, then Stream.mu, then sender.mu of
// any port. Close holds none of the first group while it waits for the second. A Receiver must not call
// its port's SetReceiver or Close.
//
// # Files
//
// Read port.go, then relay.go or stream.go: the two uses of a port.
//
//   - port_range.go, port.go, peer_address.go, sender.go, packet.go: the range of ports, a port, whose
//     packets it accepts, its sending side, a packet
//   - relay.go: packets of one leg to the other
//   - tap.go: hearing both directions of a port
//   - stream.go, dtmf.go: media that code sends or receives; telephone events
//   - readers_linux.go, epoll_loop_linux.go, socket_linux.go: the loops that read all sockets
//   - socket_other.go: a reader for each socket, on other systems
//   - settings.go, metrics.go: settings and metrics
package rtp
