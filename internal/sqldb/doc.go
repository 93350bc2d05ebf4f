// Package sqldb opens the one SQL database a node works with, SQLite or
// PostgreSQL, and hides which of the two it is: the same SQL with $1
// placeholders, the same serializable transactions, the same kinds of error.
//
// It is no ORM, and knows no table but the version table that each package's migrations have (<component>_schema). Packages own their tables; the
// name of every table begins with the component's. Times are stored as BIGINT,
// because the two databases agree on nothing else. Text is UTF-8 without NUL on
// both: PostgreSQL refuses anything else, and so does the SQLite driver here.
//
// It has no goroutines beyond those of database/sql, which Close ends. When
// the pool is full a caller waits until its context ends.
//
// SQLite: WAL, every commit synced before it is acknowledged, one writer at a
// time. Within a process Tx queues writers fairly; between processes (a
// management command beside the running server) SQLite's own lock decides and
// the loser waits up to busyTimeout. Nothing else in the process may open the
// database file: closing any descriptor of it drops the process's locks.
package sqldb
