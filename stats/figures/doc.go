// Package figures keeps the rows of cc.stats in the database, and answers the
// reports of queues and agents from them (docs/api.md, docs/figures.md).
//
// # Tables
//
// figures_queues and figures_agents have a row for each queue or agent, interval
// and partition of cc.stats; internal/consume stores them with the position, and is the
// loop of a partition. Only a row of a later event replaces a row, so repeats change
// nothing. The tombstones of cc.stats are ignored: the database keeps rows for
// stats.retention.
//
// figures_queue_days has the sums of queues for days of the account's time zone that ended
// 48 hours ago or more, figures_days the days whose sums are whole: a batch that changes a
// row of a day deletes it there. An hourly pass adds up what is missing.
//
// # Reports
//
// Rows are read newest first in batches, without a connection between batches, and
// summed in memory by the intervals of the account's time zone, one interval at a time.
// Hours and days of queues are added up by the database, from the sums of days where
// there are some.
//
// # Goroutines and bounds
//
// The consumer that NewIndexer returns has the goroutines of internal/consume, one that deletes rows past their
// retention and one that adds days up. While the database is unavailable new rows stay in
// cc.stats: rows whose tombstones Kafka compacts in the meantime (48 hours after their
// interval at the earliest) never reach the database. There are no locks.
//
// # Files
//
// Read tables.go and report_row.go, then indexer.go for the way in and list_rows.go for the way out.
//
//   - tables.go, report_row.go, report_interval.go: the columns of the two tables, a row of a report,
//     intervals
//   - indexer.go, table_entry.go, apply_batch.go: the consumer of cc.stats, a record, a batch
//   - store.go, delete_rows.go, metrics.go: the store, what deletes rows, metrics
//   - day_sums.go: the sums of days
//   - report_filter.go, read_rows.go, read_sums.go, list_rows.go, queues_since.go: reports, and the figures of today
//   - alert_and_call_statements.go, alerts.go, list_abandoned_calls.go: alerts and abandoned calls: the way in,
//     and their lists
//   - rebuild_requests.go: requests to fold again, in the database
package figures
