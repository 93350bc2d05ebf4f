// Package embedded is the Kafka of a Trunkline that was given none: one broker
// in this process, with its log on disk. It is kfake, which is made for tests,
// behind the rails it needs to be trusted with data:
//
//   - clients reach it through a pipe, a unix socket that only this user can
//     open (for management commands in other processes) and, when asked, a
//     loopback port; whatever comes in is checked before kfake sees it, since
//     it allocates what a frame claims and panics on requests it does not know;
//   - a lock keeps a second process out of the directory;
//   - every batch is synced before it is acknowledged;
//   - the log is bounded in bytes by trimming of our own that always leaves
//     the last batch, since kfake forgets a partition's offsets with its last
//     record, and in small segments, since one damaged byte costs the rest of
//     its segment;
//   - topics with cleanup.policy=compact are not trimmed but compacted, so that a
//     kill loses nothing (see compact.go).
//
// It does not promise what one node cannot: there is no replica, and a lost
// disk is a lost log. After a crash, up to one segment of trimmed records may
// come back at the start of a partition. It ignores LogAppendTime: our
// producer stamps.
//
// Goroutines: kfake's, three of each listener's kind, and the trimmer, which also
// compacts; Close ends them. While a partition is compacted, connections with
// produce requests to it wait. When it is full it drops the oldest records, read
// or not, of the partitions that hold the most; when the disk is full it refuses
// writes.
package embedded
