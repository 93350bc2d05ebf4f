// Package floor is a minimal WebSocket server, the baseline of measurements: it writes prepared
// frames to every socket and does nothing else. On the same machine and in the same run, the cost
// of a real server above this baseline is the cost of its own work; the baseline is almost only
// the kernel's.
//
// The client's token contains the number of its stream, and the client receives that stream's
// messages: the same as from a server that matches events, but without matching.
//
// There are two variants. The plain floor makes one write for each frame and socket. The
// coalesced floor sends all queued frames in one write, each still as a frame of its own.
//
// It omits the duties of a real server: it reads nothing after the handshake and sends no pings,
// and a client that stops reading blocks the other clients of its writer. Only package load
// and its callers may use it.
//
// Goroutines: one accepts, one for each handshake, one for each writer; all end with Serve's
// context. When it is full: Send blocks until the writers have caught up.
//
// Lock order: there is one lock, Server.mu.
package floor
