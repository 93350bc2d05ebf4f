package sqldb

import (
	"context"
	"fmt"
)

// Deletion is rows of a table to be deleted: those that meet a condition with these arguments.
type Deletion struct {
	Table, Key string // its name, and the columns of a key
	Where      string
	Args       []any
}

// DeletedAtOnce bounds the rows that one statement of DeleteSome deletes.
const DeletedAtOnce = 2000

// DeleteSome deletes up to DeletedAtOnce rows of each table, the tables without a common transaction, and returns their
// number; 0: none is left. doing names the action in an error.
func (db *DB) DeleteSome(ctx context.Context, doing string, tables ...Deletion) (deleted int, err error) {
	for _, t := range tables {
		n, err := db.ExecWithoutTx(ctx, fmt.Sprintf(`DELETE FROM %[1]s WHERE %[3]s AND (%[2]s) IN
			(SELECT %[2]s FROM %[1]s WHERE %[3]s LIMIT %[4]d)`, t.Table, t.Key, t.Where, DeletedAtOnce), t.Args...)
		deleted += n
		if err != nil {
			return deleted, Wrap(err, doing)
		}
	}
	return deleted, nil
}

// DeleteAll deletes all the rows, by DeleteSome.
func (db *DB) DeleteAll(ctx context.Context, doing string, tables ...Deletion) error {
	for {
		n, err := db.DeleteSome(ctx, doing, tables...)
		if err != nil || n == 0 {
			return err
		}
	}
}
