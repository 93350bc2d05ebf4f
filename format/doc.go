// Package format defines the format of a source: the topic of its records, how an HTTP
// body is split into records, how a record without a format header is recognised, and
// how to read it (account, type, time, facts, call record row). Each source has a
// folder below this one with all code for it, golden files included; format/registry
// lists them. To add a source, write its folder and add one line there.
//
// The package itself contains the code that sources share: reading fields, timestamps
// and durations, words for states without a fixed vocabulary, corrections of live
// feeds (ResyncFormat), and the reasons for rejecting a record. format/split has the
// splitters of JSON bodies.
//
// # Facts
//
// A format fills the facts (docs/facts.md) that the record alone gives, and the type
// follows if the name has one. The normalizer completes them from the state before the
// event: doc.go of event/state states its requirements for formats, and doc.go of a
// source's folder the limits of single records of the platform. In short: facts.State
// is the agent's for agent.*, the device's for device.*, or else the call's;
// agent.state without a state ends the agent's current activity; agent.no_answer with
// a call_id returns the call to the queue; "other" may have a state of the call
// (svc.cc: a call that waits again).
//
// A format never guesses missing data and never changes the source's bytes. It keeps
// no state between records. No goroutines, no locks.
package format
