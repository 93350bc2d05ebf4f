// Package eventdriver is the common part of the drivers of FreeSWITCH and Asterisk. It follows calls
// over one connection on which the platform sends events. A platform adds its commands and events
// (Platform) and its state of a call (TrackedCall).
//
// Every reported state was observed in the platform's events or in its list of channels. The package
// stores nothing: the names of a call's channels are derived from the call's id, so that a later
// process finds the calls of an earlier one.
//
// # Missed events
//
// A platform does not send the events of the time during which a client was disconnected. After each
// connect, every CompareEvery and when calls were taken over, the driver
// compares its calls with a list of all channels. The comparison finds missed states and calls that no
// longer exist. A call without a channel has ended only if two comparisons, GoneAfter apart, found
// neither a channel nor an event of it.
//
// # Goroutines
//
// Follow connects, reads events, compares and reports in the caller's goroutine, so that progress is in
// order. Each hang-up that an event or a comparison causes has a goroutine, which ends with the reply
// or the connection; Follow closes the connection and waits for them.
//
// # Limits
//
// At MaxCalls unfinished calls Originate returns fault.Unavailable. Events wait during a slow report;
// above the limits of the connection's queue the connection is closed and opened again, and the
// comparison after the connect finds the missed events.
//
// # Lock order
//
// Driver.mu is the only lock. No command is sent and nothing is reported while it is held.
package eventdriver
