// Package figures keeps the rows of cc.stats in the database, and answers the
// reports of queues and agents from them (docs/api.md, docs/figures.md).
//
// # Tables
//
// figures_queues and figures_agents have a row for each queue or agent, interval
// and partition of cc.stats; figures_offsets has up to where each partition is in
// them. A batch changes rows and offset in one transaction, which begins by moving
// the offset from where the reader began: an indexer that overlaps with another
// finds it moved and starts over behind it. A row gives way to one of a later
// event only, so repeats change nothing. The tombstones of cc.stats are left out:
// the database keeps rows as long as stats.retention says.
//
// # Reports
//
// Rows are read newest first in batches, without a connection in between, and
// added up in memory by the intervals of the account's time zone: one interval at
// a time is held.
//
// # Goroutines, and when it is full
//
// Indexer.Run has one goroutine for each partition that its consumer group gives
// it, and one that deletes rows past their retention; all end with its context.
// A partition's goroutine holds one batch (batchRecords); at most maxBatches of
// them write at once. While the database is unavailable they wait, and cc.stats
// holds what comes: rows whose tombstones Kafka compacts meanwhile (48 hours
// after their interval at the earliest) are lost to the database. There are no
// locks.
package figures
