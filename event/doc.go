// Package event is the vocabulary every room shares: what a raw record and a
// cc_evt message are on the wire, which topics and headers carry them, and how
// an event's id is made.
//
// It refuses to do anything: no I/O, no goroutines, no state, and it imports
// nothing of ours. Two rooms that must agree on bytes agree here.
package event
