// Package event defines the wire formats that all packages share: topics, record
// headers, the message of cc.evt, the call record row, event ids, and positions
// in the raw log.
//
// It has no I/O, no goroutines and no state, and imports no other package of
// this module.
package event
