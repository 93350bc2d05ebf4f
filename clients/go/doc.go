// Package trunkline is a client of Trunkline's events channel (docs/channel.md):
// it logs in, takes a snapshot, delivers every later event once, and resumes after
// a disconnect.
//
// Subscribe works in the caller's goroutine and starts none that outlives a read.
// Nothing is queued: a slow loop slows the reading, and the server then closes with
// 4008, after which the client resumes. What is remembered to drop repeats is
// bounded.
package trunkline

// Version is the version of the client, which is the server's.
const Version = "0.1.0"
