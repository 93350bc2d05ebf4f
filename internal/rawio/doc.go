// Package rawio reads and writes sockets that must not make their caller wait.
//
// On Linux it goes past the bookkeeping of Go's scheduler and poller, which is
// there for system calls that wait: of a call that takes a few microseconds it
// is a tenth and more (docs/benchmarks.md). The caller sees to it that the
// descriptor is a stream socket of its own, not closed meanwhile, and on other
// systems that it is set not to block.
//
// It has no goroutine, no lock and no state.
package rawio
