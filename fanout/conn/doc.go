// Package conn sends bytes to many clients without blocking on any of them: TCP and TLS
// connections with non-blocking writes (Conn), a queue per client with bounded memory
// (Queue), a few goroutines that write for all clients (Writers), and the frames of
// WebSocket and server-sent events.
//
// It is independent of events, tokens and accounts: a message is a payload and a number
// (Frame.ID), which the package returns after it has written the message.
//
// # Goroutines
//
// None of its own. The caller starts as many goroutines with Writers.Run as it needs and
// stops them with their context. Conn.Wait blocks its caller until the socket has room;
// Conn.Close ends it.
//
// # Bounds
//
// A Conn reports that its socket is full; for TLS it keeps the rest of started records.
// A Queue accepts every frame and counts the memory that it keeps: its user sets the
// limit. Writers.Schedule blocks while all writers are busy.
//
// # Locks
//
// A Queue has no lock; its user's lock guards it. rawConn.mu is acquired last, and no
// lock is acquired while it is held.
package conn
