// Package conn sends bytes to many clients without waiting for any of them: TCP
// and TLS connections that take what fits (Conn), a queue per client that is
// bounded in the memory it keeps (Queue), a few goroutines that write for all
// clients (Writers), and the frames of WebSocket and server-sent events.
//
// It knows no events, tokens or accounts, and has no reference to its user: a
// message is a payload and a number (Frame.ID) that is given back when the
// message has been written.
//
// # Goroutines
//
// None of its own. The user runs Writers.Run, as many as it wants at the same
// time, and stops them with their context. Conn.Wait parks its caller until the
// socket has room; Conn.Close ends it.
//
// # When it is full
//
// A Conn reports that its socket takes no more; for TLS it keeps the rest of the
// records that have begun. A Queue takes everything and counts what it keeps in
// memory: its user decides what is too much. Writers.Schedule waits while all
// writers are busy.
//
// # Locks
//
// A Queue has no lock, the user's guards it. rawConn.mu is taken last, and nothing
// is called with it held.
package conn
