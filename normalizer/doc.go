// Package normalizer turns what sources sent into what subscribers and reports
// read: each record of cc.raw becomes exactly one message on cc.evt, each of
// cdr.raw one row on cdr, and what cannot become either goes to cc.dead with
// its reason. What a record means is read by package format. If this is your
// first change, read worker.go (the loop of a partition), then takeover.go.
//
// It refuses to skip a record, to reorder, and to change the source's bytes.
//
// # Ids
//
// Ids are a function of the raw log: every raw record takes one step of its
// partition's chain (event.NextID), also one that becomes a dead letter.
// Whether a record is one can depend on the day (its account may be created
// later), and ids must not. A worker that takes a partition over finds the
// newest position at the end of the normalized topic and goes on from its id.
// The group's commit only tells which dead letters were written already.
//
// # Repeats
//
// Repeats are harmless and expected: after a crash, a failed produce or an
// overlap of two normalizers the same record is written again, with the same id
// and the same source_position, and consumers drop a position at or below the
// last one of the partition. That is only safe when no position is ever written
// before one below it: so dead letters are made durable before the events of
// their batch, and a batch is one produce request's worth.
//
// # A raw log that was cut
//
// A raw partition can lose its end, and a topic can be created again. Offsets
// are then given out a second time. A worker compares topic id and leader epoch
// at takeover, when a reader finds that the log does not go on, and before the
// first record of another leader epoch. It goes on behind the last record that
// survived, in the next generation of event.Position. Not covered: a second
// normalizer that still holds records of the log before and writes them while
// the new generation begins.
//
// # Failures
//
// While Kafka or the account store is unavailable a partition waits, and the
// raw log holds what comes. A record that fails maxFailures times becomes a
// dead letter. Records that are deleted or damaged in the raw log are counted
// and passed.
//
// # Goroutines
//
// Run has one for each partition assigned to this process, started and ended by
// the consumer group; nothing else. Each holds one read and one batch. There
// are no locks.
package normalizer
