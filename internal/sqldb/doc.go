// Package sqldb opens the SQL database of a node, SQLite or PostgreSQL, behind one
// interface: the same SQL with $1 placeholders, the same serializable transactions, the
// same kinds of error.
//
// It is not an ORM. It has no tables but the version table of each package's migrations
// (<component>_schema). Packages own their tables; the name of every table begins with
// the component's. Times are stored as BIGINT, because the two databases have no common
// type for them. Text is UTF-8 without NUL on both: PostgreSQL refuses anything else,
// and so does the SQLite driver here.
//
// A migration adds to the schema, so that in a rolling upgrade the nodes of the version
// before run on, and start again after a crash. What an older node would not understand is
// dropped one version later, by a migration that says which version it needs (Migrate).
//
// It has no goroutines beyond those of database/sql, which Close ends. If the pool is
// full a caller waits until its context ends.
//
// SQLite: WAL, every commit synced before it is acknowledged, one writer at a time.
// Within a process Tx queues writers fairly; between processes (a management command and
// the running server) SQLite's own lock decides and the loser waits up to busyTimeout.
// No other code in the process may open the database file: closing any descriptor of it
// drops the process's locks.
//
// # Files
//
// Read sqldb.go.
//
//   - sqldb.go, settings.go: opening, transactions
//   - postgres.go, sqlite.go, sqlite_text_check.go: the two databases
//   - errors.go: which errors are repeated, and the kinds of the others
//   - migrate.go: migrations
//   - bulk_tx.go, run_statements.go, batched_delete.go, scan_rows.go, id.go, poll_if_changed.go: many rows at
//     once, statements without a transaction, deletions in parts, reading rows, ids, polls that cost
//     nothing while nothing changes
package sqldb
