// Package explain answers why an event did or did not reach a client: the raw record
// it was made from, what its format and facts come from, and what became of it at
// every connection of the events channel and at every webhook.
//
// It asks those that know: Kafka for the records, package fanout on every node for the
// connections, package webhook for the positions in the database. It keeps nothing, and
// nothing is written for it while events pass. What the normalizer made of a record is
// found by reading the record again with its format: facts that the record alone does
// not tell come from the state before the event.
//
// It answers with fault.KindNotFound for an event of an account that the caller may not
// see, as for one that does not exist, and with fault.KindGone for every id from before
// the beginning of the log. It refuses nothing else, starts no goroutine and has no
// locks; a question costs a few look-ups and one exchange with the other nodes.
package explain
