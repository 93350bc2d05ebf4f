package identity

import (
	"database/sql"
	"time"
)

// toMillis truncates a time to milliseconds, as the database stores it; the zero time
// stays zero.
func toMillis(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return time.UnixMilli(t.UnixMilli())
}

// nullTime returns a column's value: Unix milliseconds, NULL for the zero time.
func nullTime(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMilli(), Valid: !t.IsZero()}
}

// timeFromNull returns the time of a column's Unix milliseconds, zero for NULL.
func timeFromNull(millis sql.NullInt64) time.Time {
	if !millis.Valid {
		return time.Time{}
	}
	return time.UnixMilli(millis.Int64)
}
