// Package normalizer converts raw records: each record of cc.raw becomes exactly one
// message on cc.evt (a second copy of an event becomes none), each record of cdr.raw
// one row on cdr. A record that can become neither is a dead letter on cc.dead, with
// the reason. Package format interprets the records. Start reading at
// partition_worker.go (the loop of a partition), then takeover.go.
//
// It never skips or reorders records, and never changes the source's bytes.
//
// # Ids
//
// Ids are a function of the raw log: every raw record, including dead letters, gets
// the next id of its partition (event.NextID). Whether a record becomes a dead letter
// can depend on the time (its account may be created later); ids must not. A worker
// that takes over a partition finds the newest position at the end of the normalized
// topic and continues from its id. The group's commit only records which dead letters
// were already written.
//
// # State
//
// The worker of a partition of cc.raw keeps the state of its agents, calls and
// devices (package event/state) and completes the facts of each message from it
// while it fills a batch; changes by records that do not become events of the batch
// are rolled back. After the batch is durable on cc.evt, a stateWriter writes the changed
// entries and the position in cc.evt to cc.state, in one record batch. A worker
// that takes over loads cc.state and folds cc.evt from its position to the end.
// A worker also folds cc.evt if its batch does not directly follow the folded events:
// then another worker of the partition has written too, and the order of the log
// counts. If that worker is ahead, this one continues after it. So the facts of a
// message are always completed from the state at exactly its raw record, regardless of
// the writer.
//
// Compaction keeps the last record of a key, regardless of the writer. A stateWriter
// has the offsets of its own batches; records between them are of another one. It reads
// these, and writes each key again whose last record is wrong: at the takeover, with
// each batch, and once kafka.GroupOverlap after the takeover.
//
// # Logs that lose their end
//
// cc.evt may be cut or made again, also under a running worker: a batch then lies before
// the end of the folded events, or the event before the state's position is not folded.
// The worker finds the first events that the state does not have and folds on from there
// (stateKeeper.followLog); the state keeps what it has folded of the lost ones.
//
// cc.state may be cut too. A stateWriter notices it by the offset of its next batch,
// reads the topic, and writes what is missing; until then positions are Incomplete. If it
// ends before, the next worker finds a position at an offset below its StateOffset, or an
// Incomplete one, loads the records before that, and folds cc.evt again from there.
//
// # Partitions of accounts
//
// Before the first event of an account in a partition of cc.evt is produced, a
// record on cc.accounts names the partition (account_partitions.go), so that a fanout node
// that reads only some partitions misses no event. A takeover reads cc.accounts; after
// that the cost is one map look-up per event.
//
// # Repeats
//
// Repeats are harmless and expected: after a crash, a failed produce or an
// overlap of two normalizers the same record is written again, with the same id
// and the same source_position, and consumers drop a position at or below the
// last one of the partition. That is only safe if the first copies of all positions
// are written in order: so dead letters are made durable before the events of their
// batch, and a batch fits in one produce request.
//
// # Second copies
//
// Two feeds may send one event of a platform, and two processes one body under an
// Idempotency-Key, with one header event.HeaderIdentity. The first copy that can be
// normalized becomes a message; the others are dropped. The state contains the
// identities of the messages, so the dropped copies are a function of the log too. A
// dropped copy also gets an id, and the position written to cc.state includes it.
//
// # Truncated raw logs
//
// A raw partition can be truncated, and a topic can be recreated. Offsets are then used
// a second time. A worker compares topic id and leader epoch at takeover, when a reader
// finds a gap in the log, and before the first record of another leader epoch. It
// continues after the last surviving record, in the next generation of event.Position.
// Not covered: a second normalizer that still holds records of the old log and writes
// them while the new generation begins.
//
// # Failures
//
// While Kafka or the account store is unavailable a partition waits, and new records
// stay in the raw log. A record that fails maxFailures times becomes a dead letter.
// Records deleted or damaged in the raw log are counted and skipped.
//
// # Goroutines
//
// Run has one for each partition assigned to this process, started and ended by
// the consumer group, and one stateWriter for each partition of cc.raw, which
// ends with it. Each worker holds the records of one read and one batch; a writer holds
// the changes of one request, then the worker waits. The locks are stateWriter.mu and
// accountLog.mu, never both.
//
// # Files
//
// Read batch.go and convert_record.go: what becomes of one record. Then partition_worker.go and takeover.go.
//
//   - normalizer.go, settings.go, metrics.go, trace.go: the normalizer, settings, metrics, spans
//   - batch.go, convert_record.go, dead_letter_kinds.go, normalize_one.go: records to messages, rows and dead
//     letters; one record by itself
//   - partition_worker.go, takeover.go, raw_log_gap.go: the loop of one partition: batches, taking
//     over, what the raw log has lost
//   - state_keeper.go, state_writer.go, state_repair.go: the state of the partition, the goroutine that writes
//     it, and what another normalizer has overwritten or the topic has lost
//   - append_call_data.go: the members that the specification gives to a call event
//   - account_partitions.go: in which partitions an account has events, on cc.accounts
package normalizer
