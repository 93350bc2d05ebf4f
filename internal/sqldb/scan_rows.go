package sqldb

import (
	"database/sql"
	"errors"
)

// ScanFunc reads the columns of one row, as sql.Rows' and sql.Row's Scan.
type ScanFunc func(columns ...any) error

// ScanColumn reads a row of one column, for Collect and Find.
func ScanColumn[T any](scan ScanFunc) (value T, err error) {
	err = scan(&value)
	return value, err
}

// Collect reads every row of a query. It takes the error of the query too, so that
// callers check only one error.
func Collect[T any](rows *sql.Rows, err error, action string, read func(ScanFunc) (T, error)) ([]T, error) {
	if err != nil {
		return nil, Wrap(err, action)
	}
	defer rows.Close()

	var all []T
	for rows.Next() {
		value, err := read(rows.Scan)
		if err != nil {
			return nil, Wrap(err, action)
		}
		all = append(all, value)
	}

	return all, Wrap(rows.Err(), action)
}

// Find reads the row of a query. It returns missing if there is none, or if an argument
// is text that neither database stores: NUL and invalid UTF-8.
func Find[T any](row *sql.Row, missing error, action string, read func(ScanFunc) (T, error)) (T, error) {
	found, err := read(row.Scan)
	if err == nil {
		return found, nil
	}
	var none T
	if errors.Is(err, sql.ErrNoRows) || isInvalidText(err) {
		return none, missing
	}
	return none, Wrap(err, action)
}

// FindInto is Find into the columns' targets.
func FindInto(row *sql.Row, missing error, action string, columns ...any) error {
	_, err := Find(row, missing, action, func(scan ScanFunc) (struct{}, error) { return struct{}{}, scan(columns...) })
	return err
}
