// Package normalizer converts raw records: each record of cc.raw becomes exactly one
// message on cc.evt (a second copy of an event becomes none), each record of cdr.raw
// one row on cdr. A record that can become neither is a dead letter on cc.dead, with
// the reason. Package format interprets the records. If this is your first change,
// read partition_worker.go (the loop of a partition), then takeover.go.
//
// It never skips or reorders records, and never changes the source's bytes.
//
// # Ids
//
// Ids are a function of the raw log: every raw record takes one step of its
// partition's chain (event.NextID), also one that becomes a dead letter.
// Whether a record is one can depend on the day (its account may be created
// later), and ids must not. A worker that takes a partition over finds the
// newest position at the end of the normalized topic and continues from its id.
// The group's commit only records which dead letters were written already.
//
// # State
//
// The worker of a partition of cc.raw keeps the state of its agents, calls and
// devices (package event/state) and completes the facts of each message from it
// while it fills a batch; what does not become an event of the batch is taken
// back. After the batch is durable on cc.evt, a stateWriter writes the changed
// entries and the position in cc.evt to cc.state, in one record batch. A worker
// that takes over loads cc.state and folds cc.evt from its position to the end.
// So does one whose batch does not lie just behind what it has folded: another
// worker of the partition wrote too, and the log says what came first. If that one
// is ahead, it continues after it. So the facts of a message are always completed
// from the state at exactly its raw record, regardless of the writer.
//
// Compaction keeps the last record of a key, regardless of the writer. The writer knows
// where its own batches are; records between them are another one's. They are read
// back, and what has become the last record of a key wrongly is written again: at
// the takeover, with each batch, and once kafka.GroupOverlap after the takeover.
//
// # Partitions of accounts
//
// Before the first event of an account in a partition of cc.evt is produced, a
// record on cc.accounts names the partition (placements.go), so that a fanout node
// that reads only some partitions misses none. A takeover reads cc.accounts; after
// that it costs one look-up in a map per event.
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
// # Second copies
//
// Two feeds may send one event of a platform, with one header
// event.HeaderIdentity. The first copy that can be normalized becomes a message;
// the others become nothing. The state knows the identities of the messages, so
// what is dropped is a function of the log too. A copy that is dropped takes its
// step of the chain of ids, and the position written to cc.state includes it.
//
// # A raw log that was cut
//
// A raw partition can lose its end, and a topic can be recreated. Offsets are
// then used a second time. A worker compares topic id and leader epoch
// at takeover, when a reader finds a gap in the log, and before the first record
// of another leader epoch. It continues after the last record that survived, in the next generation of event.Position. Not covered: a second
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
// the consumer group, and one stateWriter for each partition of cc.raw, which
// ends with it. Each worker holds one read and one batch; a writer holds the
// changes of one request, then the worker waits. The locks are stateWriter.mu and
// accountLog.mu, never both.
package normalizer
