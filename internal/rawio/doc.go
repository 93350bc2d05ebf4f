// Package rawio reads and writes sockets without blocking.
//
// On Linux it bypasses the bookkeeping of Go's scheduler and poller for blocking
// system calls, which costs a tenth or more of a call of a few microseconds
// (docs/benchmarks.md). The caller must own the descriptor of a stream socket, must
// not close it during a call and, on other systems, must have set it to non-blocking
// mode.
//
// The package has no goroutine, no lock and no state.
package rawio
