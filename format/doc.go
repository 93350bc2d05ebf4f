// Package format defines what a source's format is: the topic its records go
// to, how an HTTP body of them splits, how a record is recognised without a
// format header, and what it means (account, type, time, facts, call record
// row). Each source has a folder below this one with everything that is known
// of it, golden files included; format/registry lists them. To add a source,
// write its folder and add one line there.
//
// The package itself has what sources share: reading fields, timestamps
// and durations, words for states that have no fixed vocabulary, corrections of live
// feeds (Resync), and the reasons for which a record is rejected. format/split has
// the splitters of JSON bodies.
//
// # Facts
//
// A format fills the facts (docs/facts.md) that the record alone gives, and the
// type follows if the name has one. The normalizer completes them from the
// state before the event: what event/state expects of a format is in its doc.go,
// and the limits of a single record of a platform in the doc.go of its folder.
// In short: facts.State is the agent's for agent.*, the device's for device.*, else
// the call's; agent.state without a state ends what the agent did at the moment;
// agent.no_answer with a call_id gives the call back to the queue; "other" may have
// a state of the call (svc.cc: a call that is waiting again).
//
// A format never guesses what a record does not say and never changes the
// source's bytes. It keeps no state between records. No goroutines, no locks.
package format
