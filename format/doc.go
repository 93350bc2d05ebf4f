// Package format defines what a source's format is: the topic its records go
// to, how an HTTP body of them splits, how a record is recognised without a
// format header, and what it means (account, type, time, queue, call record
// row). Each source has a folder below this one with everything that is known
// of it, golden files included; format/registry lists them. To add a source,
// write its folder and add one line there.
//
// The package itself has what sources share: reading fields, clocks and
// durations, and the reasons for which a record is rejected. format/split has
// the splitters of JSON bodies.
//
// A format never guesses what a record does not say and never changes the
// source's bytes. It keeps no state between records. No goroutines, no locks.
package format
