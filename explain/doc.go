// Package explain reports why an event did or did not reach a client: its raw record,
// the origins of its format and facts, and its outcome at every connection of the events
// channel and at every webhook.
//
// The data comes from Kafka (the records), package fanout on every node (the
// connections) and package webhook (the positions in the database). The package stores
// nothing, and no data is written for it when events are delivered. To find the result
// of the normalizer it parses the raw record again with its format: facts that are not
// in the record come from the state before the event.
//
// It returns fault.KindNotFound for an event that does not exist or whose account the
// caller cannot access, and fault.KindGone for every id from before the beginning of the
// log. It has no other refusals, no goroutines and no locks; a question costs a few
// look-ups and one exchange with the other nodes.
package explain
