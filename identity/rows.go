package identity

import (
	"context"
	"database/sql"
	"strings"
	"unicode/utf8"

	"trunkline/internal/sqldb"
)

// querier is a database or a transaction on it.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

type scanFunc func(columns ...any) error

// collect reads every row of a query's answer. It takes the query's error, so
// that a call of it is all there is to say.
func collect[T any](rows *sql.Rows, err error, doing string, read func(scanFunc) (T, error)) ([]T, error) {
	if err != nil {
		return nil, sqldb.Wrap(err, doing)
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		one, err := read(rows.Scan)
		if err != nil {
			return nil, sqldb.Wrap(err, doing)
		}
		all = append(all, one)
	}
	return all, sqldb.Wrap(rows.Err(), doing)
}

// storable says whether a database can have this text at all: PostgreSQL
// refuses zero bytes and invalid UTF-8, so nothing stored equals such a text.
func storable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}
