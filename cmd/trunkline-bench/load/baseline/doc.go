// Package baseline is the minimal WebSocket server of fanout --floor, with which measurements are compared: it
// writes prepared frames to every socket and does nothing else. On the same machine and in the same run, the
// cost of a real server above this baseline is the cost of its own work; the baseline is almost only the
// kernel's. docs/benchmarks.md calls its figure the floor.
//
// The client's token contains the number of its stream, and the client receives that stream's
// messages: the same as from a server that matches events, but without matching.
//
// There are two variants. The plain server makes one write for each frame and socket. The
// coalescing one sends all queued frames in one write, each still as a frame of its own.
//
// It omits the duties of a real server: it reads nothing after the handshake and sends no pings,
// and a client that stops reading blocks the other clients of its socketWriter. Only package load
// and its callers may use it.
//
// Goroutines: one accepts, one for each handshake, one for each socketWriter; all end with Serve's
// context. When it is full: Send blocks until the writers have caught up.
//
// Lock order: Server.mu and socketWriter.mu are never held together.
package baseline
