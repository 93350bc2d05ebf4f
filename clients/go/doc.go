// Package trunkline is a client of Trunkline's events channel (docs/channel.md):
// it logs in, takes a snapshot, delivers every later event once, and resumes after
// a disconnect.
//
// Subscribe works in the caller's goroutine and starts none that outlives a read. It queues
// nothing: a slow loop slows down reading, and the server then closes the connection with 4008,
// after which the client resumes. The memory for dropping repeats is bounded.
package trunkline

// Version is the version of the client, equal to the server's.
const Version = "0.1.0"
