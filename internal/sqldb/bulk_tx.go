package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// BulkTx is a transaction with bulk inserts.
type BulkTx struct {
	*sql.Tx
	conn *sql.Conn // PostgreSQL: the transaction's connection
}

// BulkTx is Tx for bulk changes: on PostgreSQL the transaction is read committed, so fn
// must lock the rows it depends on. A serializable one would track every index page of a
// batch and fail because of rows that do not conflict. As with Tx, fn may run several
// times.
func (db *DB) BulkTx(ctx context.Context, fn func(*BulkTx) error) error {
	if !db.isPostgres {
		return db.Tx(ctx, func(tx *sql.Tx) error { return fn(&BulkTx{Tx: tx}) })
	}

	return retryBusy(ctx, func(ctx context.Context) (err error) {
		// COPY needs the connection of the transaction, which a sql.Tx does not give.
		conn, err := db.Conn(ctx)
		if err != nil {
			return Wrap(err, "connecting to the database")
		}
		defer conn.Close() // back to the pool; the transaction has ended

		tx, err := conn.BeginTx(ctx, nil)
		if err != nil {
			return Wrap(err, "beginning a transaction")
		}
		// No effect after Commit; its error adds nothing to fn's.
		defer func() { _ = tx.Rollback() }()

		if err := fn(&BulkTx{tx, conn}); err != nil {
			return asFault(err)
		}

		return Wrap(tx.Commit(), "committing a transaction")
	})
}

// CopyIn inserts n rows: with PostgreSQL's COPY, or with one prepared statement on
// SQLite. row returns the values of the i-th row in the order of columns; they are used
// before its next call. Names are trusted.
func (t *BulkTx) CopyIn(ctx context.Context, table string, columns []string, n int, row func(i int) []any) error {
	if n == 0 {
		return nil
	}
	if t.conn == nil {
		return t.insertRows(ctx, table, columns, n, row)
	}

	return t.conn.Raw(func(driverConn any) error {
		source := pgx.CopyFromSlice(n, func(i int) ([]any, error) { return row(i), nil })
		_, err := driverConn.(*stdlib.Conn).Conn().CopyFrom(ctx, pgx.Identifier{table}, columns, source)
		return err
	})
}

// insertRows is CopyIn on SQLite.
func (t *BulkTx) insertRows(ctx context.Context, table string, columns []string, n int, row func(i int) []any) error {
	quoted := make([]string, len(columns))
	placeholders := make([]string, len(columns))
	for i, name := range columns {
		quoted[i], placeholders[i] = `"`+name+`"`, fmt.Sprintf("$%d", i+1)
	}

	statement, err := t.PrepareContext(ctx, `INSERT INTO `+table+` (`+strings.Join(quoted, ", ")+
		`) VALUES (`+strings.Join(placeholders, ", ")+`)`)
	if err != nil {
		return err
	}
	defer statement.Close()

	for i := range n {
		_, err := statement.ExecContext(ctx, row(i)...)
		if err != nil {
			return err
		}
	}

	return nil
}
