// Package normalizer turns what sources sent into what subscribers and reports
// read: each record of cc.raw becomes exactly one message on cc.evt, each of
// cdr.raw one row on cdr, and what cannot become either goes to cc.dead with
// its reason. What a record of a source means is in the source's folder below
// format/; nothing here knows a source. If this is your first change, read
// format/format.go, then lane.go.
//
// It refuses to guess what a record does not say (only the event before could
// tell whether an agent that became available came back from a break), to
// change the source's bytes, to skip a record, and to reorder.
//
// Ids are a function of the raw log alone: every raw record takes one step of
// its partition's chain (event.NextID), also one that becomes a dead letter.
// Whether a record is one can depend on the day (its account may be created
// later), and ids must not. A normalizer that takes a partition over reads the
// chain's last known link back from the end of the normalized topic, and steps
// it on over the records that are known to be done.
//
// Repeats are harmless and expected: after a crash, a failed produce or an
// overlap of two normalizers the same record is written again, with the same id
// and the same source_position, and consumers drop a position at or below the
// last one of the partition. That is only safe when no position is ever written
// before one below it: so dead letters are made durable before the events of
// their batch, and a batch is one produce request's worth.
//
// Goroutines: Run has one for each partition assigned to this process, started
// and ended by the consumer group; nothing else. When it is full: a lane holds
// one read and one batch; while Kafka or the account store is away it waits,
// and the raw log holds what comes. There are no locks.
package normalizer
