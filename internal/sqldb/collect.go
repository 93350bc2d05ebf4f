package sqldb

import "database/sql"

// ScanFunc reads the columns of one row, as sql.Rows' and sql.Row's Scan.
type ScanFunc func(columns ...any) error

// Collect reads every row of a query's answer. It takes the query's error, so
// that a call of it is all there is to say.
func Collect[T any](rows *sql.Rows, err error, doing string, read func(ScanFunc) (T, error)) ([]T, error) {
	if err != nil {
		return nil, Wrap(err, doing)
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		one, err := read(rows.Scan)
		if err != nil {
			return nil, Wrap(err, doing)
		}
		all = append(all, one)
	}
	return all, Wrap(rows.Err(), doing)
}
