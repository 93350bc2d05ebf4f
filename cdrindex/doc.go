// Package cdrindex keeps the call records of the cdr topic in the database,
// one row for each call of an account, and answers the reports from them (docs/api.md, "GET /api/v2/reports/cdrs").
//
// If this is your first change, read indexer.go and record_batch.go (the loop is
// internal/consume), then parse_cdr_record.go (a record), apply_batch.go (a transaction) and list_calls.go (a report).
//
// # Tables
//
// cdrindex_rows has the rows; in PostgreSQL it is partitioned by the month (UTC)
// in which a call began. cdrindex_calls has for each call the month of its row
// and the raw record that it came from, so that a call has one row although an
// older version of it may be in another month. The position
// of each partition of the topic is internal/consume's. A batch changes all three
// in one transaction, so that they agree after any crash.
//
// A call that ended in a later month than it began has ended_later set. A
// report's range takes first the rows that began in it, then those that began
// before it and, with ended_later, ended in it: no row is both.
//
// # Consistency
//
//   - The newest record of a call is its row: the one with the later source
//     position. A repeat (the same raw record normalized twice) changes nothing,
//     whenever it is read.
//   - A batch begins by moving its partition's offset from where its reader
//     began. An indexer that overlaps with another finds the offset moved and
//     starts over behind it.
//   - Two indexers that write the same call (an account in two partitions, or a
//     reindex beside the indexer) are ordered by the lock on the call's row in
//     cdrindex_calls, or by its primary key when it is new.
//   - With its offset a partition has the topic's id and the leader epoch of the
//     last record. Reading continues at the end of a truncated topic, and at the
//     beginning of a recreated one; all records of the latter are newer.
//
// # What it rejects
//
// Scans: every query has an index that begins with the account. Records that are
// not valid rows, which the normalizer never writes: the indexer skips them, logs an
// error and counts trunkline_cdrindex_records_total{result="invalid"}; they stay in
// the topic. Rows that retention has dropped: they are not indexed again.
//
// # Goroutines, and when it is full
//
// The consumer that NewIndexer returns has one goroutine for each assigned partition, which holds one batch (limits),
// and one that creates partitions of the table ahead and drops old ones. Reports have no
// goroutines; they hold a page, and a CSV export one batch (report.Rows), which
// waits for its reader without a connection.
//
// A call record's recording_id is not in the tables unless the platform's record names it: a
// report asks Recordings for those of its rows, so that it follows when a recording comes or goes.
//
// There is one lock, Index.mu, held for a map access.
//
// # Files
//
// Read parse_cdr_record.go and indexer.go, then list_calls.go.
//
//   - cdrindex.go, settings.go, metrics.go: the index, settings, metrics
//   - indexer.go, record_batch.go: the way in: the consumer of cdr, its batches
//   - parse_cdr_record.go, row_from_json.go, row_columns.go: a record of cdr as a row
//   - apply_batch.go, find_and_delete_calls_sql.go: a batch in the database: the newest record of a call is its row
//   - table_month.go, table_partitions.go, retention.go, purge_account.go, calls_of_number.go: tables by month,
//     and what deletes rows
//   - filter.go, row_queries.go, list_calls.go, find_call.go, csv.go: the way out: reports
//   - reindex.go: reading cdr again
package cdrindex
