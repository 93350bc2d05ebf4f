// Package floor is the least that a WebSocket server can do: it writes ready
// frames to every socket and does nothing else. What a real server costs above
// it, on the same machine in the same run, is what its work costs; below it is
// only the kernel.
//
// A client has one stream, which its token names by its number, and gets that
// stream's messages: what a matching server would send it, without the matching.
//
// There are two. The plain floor makes one write for each frame and socket.
// The coalesced floor writes all frames that have come meanwhile in one write,
// each still a frame of its own.
//
// It refuses everything a server owes its clients: it reads nothing after the
// handshake, sends no pings, and a client that stops reading stops all others
// of its writer. It is for package loadtest to run against and for nothing
// else.
//
// Goroutines: one accepts, one for each handshake, one for each writer; all
// end with Serve's context. When it is full: Send waits for the writers.
//
// Lock order: there is one lock, Server.mu.
package floor
