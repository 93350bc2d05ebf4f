// Package embedded runs one Kafka broker in this process, with its log on disk, for
// installations without a Kafka cluster. The broker is kfake, which is made for
// tests, with the protection that durable data needs:
//
//   - clients reach it through a pipe, a unix socket that only this user can
//     open (for management commands in other processes) and, if configured, a
//     loopback port; every request is checked before kfake reads it, since kfake
//     allocates the size that a frame claims and panics on unknown requests;
//   - a lock prevents a second process from using the directory;
//   - every batch is synced before it is acknowledged, in rounds: one write and one sync of
//     a journal for all that waits, whichever partitions it is of (see journal.go and
//     sync_round.go). The files of the log are synced later, in the background; at start the
//     journal is replayed, and indexes that do not agree with their segments are made again
//     (index_repair.go);
//   - the package itself trims the log so that the directory has at most a number of
//     bytes, but always keeps the last batch, since kfake loses a partition's offsets
//     with its last record; segments are small, since one damaged byte loses the rest of
//     its segment, and a file is deleted as a whole;
//   - topics with cleanup.policy=compact are not trimmed but compacted, so that a
//     kill loses nothing (see compact.go).
//
// There is no replica: a lost disk is a lost log. After a crash, trimmed records that were
// still in the journal, or up to one segment, may reappear at the start of a partition.
// The broker ignores LogAppendTime: the producer sets timestamps.
//
// Goroutines: kfake's, one for each listener (unix socket, loopback port), the
// trimmer, the compactor, and one that syncs the log's files while the journal's
// other file is filled; Close ends them. A round of syncs has a goroutine while somebody
// waits for one (package rounds), and takes durability.mu for moments. While a piece of a
// partition is compacted, connections with produce requests to it wait, and so do requests that
// delete topics (durability.deletionMu, taken before durability.mu). Near its size limit,
// which counts every file in the directory, the broker deletes the oldest records, read or
// not, of the largest partitions, but keeps an eighth of the limit for topics that are not
// compacted; on a full disk it rejects writes.
//
// # Files
//
// Read broker.go.
//
//   - broker.go, settings.go, metrics.go, folder_lock.go: the broker on the data directory; settings and
//     metrics
//   - listener.go, socket.go, checked_conn.go, durable_response.go: connections, what is checked of
//     their requests, and what their responses wait for
//   - durability.go, sync_round.go, journal.go, partition_log.go, pause_for_compaction.go: nothing is
//     acknowledged before it is on disk; sync_data_linux.go, sync_data_other.go: the system's call
//   - trim.go, compact.go: the bounds of the folder
//   - leader_epochs.go, reopen_after_cut.go, index_repair.go: what a start after a crash repairs
package embedded
