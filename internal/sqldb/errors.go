package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"time"

	"trunkline/internal/retry"
)

const (
	maxAttempts = 12
	firstWait   = 3 * time.Millisecond
	maxWait     = 350 * time.Millisecond
)

// retryBusy runs fn up to maxAttempts times, while it fails because of a concurrent
// transaction.
func retryBusy(ctx context.Context, fn func(context.Context) error) error {
	backoff := retry.Backoff{First: firstWait, Max: maxWait}
	for attempt := 1; ; attempt++ {
		err := fn(ctx)
		if err == nil || !isBusy(err) || attempt == maxAttempts || !backoff.Wait(ctx) {
			return err
		}
	}
}

func isBusy(err error) bool {
	if code, ok := sqliteCode(err); ok {
		return sqliteBusy(code)
	}
	state, ok := postgresState(err)
	return ok && postgresBusy(state)
}

// isOpenRetriable reports whether opening SQLite failed because of another process or a slow
// machine, and not because of the file's content.
func isOpenRetriable(err error) bool {
	if code, ok := sqliteCode(err); ok {
		return sqliteBusy(code) || sqliteInterrupted(code)
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// IsUniqueViolation reports whether a unique constraint (a primary key's included) refused
// the statement.
func IsUniqueViolation(err error) bool {
	if code, ok := sqliteCode(err); ok {
		return sqliteUnique(code)
	}
	state, ok := postgresState(err)
	return ok && state == stateUnique
}

// isInvalidText reports whether a parameter is text that the database does not store.
func isInvalidText(err error) bool {
	state, _ := postgresState(err)
	return errors.Is(err, errInvalidText) || state == stateInvalidText
}

// isUnavailable reports whether the error is one of the database or the network, not of the
// statement: the same statement may succeed later.
func isUnavailable(err error) bool {
	if code, ok := sqliteCode(err); ok {
		return sqliteUnavailable(code)
	}
	if state, ok := postgresState(err); ok {
		return postgresUnavailable(state)
	}

	for _, unavailable := range []error{
		context.Canceled, context.DeadlineExceeded, driver.ErrBadConn, sql.ErrConnDone,
		sql.ErrTxDone, // the context ended: only that ends a transaction early
		io.EOF, io.ErrUnexpectedEOF,
	} {
		if errors.Is(err, unavailable) {
			return true
		}
	}

	return lostConnection(err)
}

// isDatabaseError reports whether err came from the database and not from the caller of
// a transaction.
func isDatabaseError(err error) bool {
	_, isSQLite := sqliteCode(err)
	_, isPostgres := postgresState(err)
	return isSQLite || isPostgres || isUnavailable(err)
}
