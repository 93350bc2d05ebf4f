// Package requests asks a server at a rate, or from so many connections as fast
// as they go, and counts the responses.
//
// At a rate the loop is open: request number n is due at n/rate whatever became
// of those before, and its latency is from then, so that a server which stops
// for a second is a second late with all that were due meanwhile, not with one.
// What was due and could not be begun, as every connection waited, is told by
// Behind. Without a rate the loop is closed: each connection asks again when it
// has its answer, and latency is from the asking.
//
// Of HTTP it uses the status codes only: the caller defines the
// operations and their expected responses.
//
// Goroutines: Connections while Run runs; it ends when they have. Nothing is
// queued.
package requests
