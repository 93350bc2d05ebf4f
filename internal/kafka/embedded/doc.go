// Package embedded runs one Kafka broker in this process, with its log on disk, for
// installations without a Kafka cluster. The broker is kfake, which is made for
// tests, with the protection that durable data needs:
//
//   - clients reach it through a pipe, a unix socket that only this user can
//     open (for management commands in other processes) and, if configured, a
//     loopback port; every request is checked before kfake reads it, since kfake
//     allocates the size that a frame claims and panics on unknown requests;
//   - a lock prevents a second process from using the directory;
//   - every batch is synced before it is acknowledged;
//   - the package itself trims the log so that the directory has at most a number of
//     bytes, but always keeps the last batch, since kfake loses a partition's offsets
//     with its last record; segments are small, since one damaged byte loses the rest of
//     its segment, and a file is deleted as a whole;
//   - topics with cleanup.policy=compact are not trimmed but compacted, so that a
//     kill loses nothing (see compact.go).
//
// There is no replica: a lost disk is a lost log. After a crash, up to one segment of
// trimmed records may reappear at the start of a partition. The broker ignores
// LogAppendTime: the producer sets timestamps.
//
// Goroutines: kfake's, one for each listener (unix socket, loopback port), and the
// trimmer, and the compactor; Close ends them. While a piece of a partition is compacted,
// connections with produce requests to it wait. Near its size limit, which counts every
// file in the directory, the broker deletes the oldest records, read or not, of the
// largest partitions, but keeps an eighth of the limit for topics that are not compacted;
// on a full disk it rejects writes.
package embedded
