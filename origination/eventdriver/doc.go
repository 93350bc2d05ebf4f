// Package eventdriver has what the drivers of FreeSWITCH and Asterisk share: it follows calls over one
// connection on which the platform sends events. A platform adds its commands and events (Platform)
// and its state of a call (Tracked).
//
// Every state that is reported was seen in the platform's events or in its list of channels. Nothing
// is kept that must survive a restart: the names of a call's channels are made from the call's id, so
// that a later process finds the calls of an earlier one.
//
// # What may be missed, and how it is found
//
// A platform sends nothing of what happened while a client was away. After each connect, every
// AuditEvery, when events are found to be missing and when calls were taken over, the driver lists all
// channels and compares. That tells states that were missed, and calls that are gone; a call has only
// ended this way when two comparisons, GoneAfter apart, found neither a channel nor an event of it.
//
// # Goroutines and who stops them
//
// Follow works in the caller's goroutine: it connects, reads events, compares and reports, so that
// progress is in order. Hang-ups that events or comparisons demand each have a goroutine, which ends
// with the reply or the connection; Follow closes the connection and waits for them.
//
// # When it is full
//
// At MaxCalls unfinished calls Originate refuses (fault.Unavailable). A report that takes long makes
// events wait; beyond the connection's bounds it is given up and made again, and the comparison after
// that finds what was missed.
//
// # Lock order
//
// Driver.mu alone; no command is sent and nothing reported while it is held.
package eventdriver
