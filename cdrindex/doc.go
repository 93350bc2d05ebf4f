// Package cdrindex keeps the call records of the cdr topic in the database,
// one row for each call of an account, and answers the reports from them
// (contract, "GET /api/v2/reports/cdrs").
//
// If this is your first change, read entry.go (what a record becomes), then
// apply.go (how it becomes a row), then list.go.
//
// # Tables
//
// cdrindex_rows has the rows; in PostgreSQL it is partitioned by the month (UTC)
// in which a call began. cdrindex_calls says for each call where its row is and
// which raw record it came from; it is what makes one row of each call, in
// whatever month an older version of it was. cdrindex_offsets says how far each
// partition of the topic is indexed. A batch changes all three in one
// transaction, so that they agree after any crash.
//
// A call that ended in a later month than it began has ended_later set. A
// report's range takes first the rows that began in it, then those that began
// before it and, with ended_later, ended in it: no row is both.
//
// # What holds it together
//
//   - The newest record of a call is its row. "Newer" is a later source
//     position, so a repeat (the same raw record normalized twice) changes
//     nothing, whenever it is read.
//   - A batch begins by moving its partition's offset from where its reader
//     began. An indexer that overlaps with another finds the offset moved and
//     starts over behind it.
//   - Two indexers that meet at one call (an account in two partitions, or a
//     reindex beside the indexer) are ordered by the lock on the call's line in
//     cdrindex_calls, or by its primary key when it is new.
//
// # What it refuses
//
// To guess which leg a look-up means: the loopback leg is never returned, and
// while only that is known the call is not found. To scan: every question has
// an index that begins with the account. To store what it could not find again:
// a record that is no row, which the normalizer never writes, is left out with
// an error in the log and trunkline_cdrindex_records_total{result="invalid"};
// it stays in the topic. To bring back rows that retention dropped.
//
// # Goroutines, and when it is full
//
// Indexer.Run has one goroutine for each partition it is given and one that
// makes partitions ahead and drops old ones; all end with its context. A
// partition's goroutine holds one batch (Config.BatchRows, or 16 MiB of
// records); at most Config.Batches of them write at once. While the database is
// away they wait and try again, and the topic holds what comes. Reports have no
// goroutines; they hold a page, and a CSV export one batch of 2000 rows, which
// waits for its reader without a connection.
//
// There is one lock, Index.mu, held for a map access.
package cdrindex
