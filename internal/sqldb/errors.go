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
	attempts    = 12
	firstWait   = 3 * time.Millisecond
	longestWait = 350 * time.Millisecond
)

// repeat runs fn up to attempts times, while it fails because of a concurrent
// transaction.
func repeat(ctx context.Context, fn func(context.Context) error) error {
	wait := retry.Backoff{First: firstWait, Max: longestWait}
	for attempt := 1; ; attempt++ {
		err := fn(ctx)
		if err == nil || !isBusy(err) || attempt == attempts || !wait.Wait(ctx) {
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

// isSlow reports whether opening SQLite failed because of another process or a slow
// machine, and not because of the file's content.
func isSlow(err error) bool {
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

// isNoText reports whether a parameter is text that the database does not store.
func isNoText(err error) bool {
	state, _ := postgresState(err)
	return errors.Is(err, errText) || state == stateNoText
}

// isAway reports whether the error is one of the database or the network, not of the
// statement: the same statement may succeed later.
func isAway(err error) bool {
	if code, ok := sqliteCode(err); ok {
		return sqliteAway(code)
	}
	if state, ok := postgresState(err); ok {
		return postgresAway(state)
	}
	for _, away := range []error{
		context.Canceled, context.DeadlineExceeded, driver.ErrBadConn, sql.ErrConnDone,
		sql.ErrTxDone, // the context ended: only that ends a transaction early
		io.EOF, io.ErrUnexpectedEOF,
	} {
		if errors.Is(err, away) {
			return true
		}
	}
	return lostConnection(err)
}

// isDriver reports whether err came from the database and not from the caller of
// a transaction.
func isDriver(err error) bool {
	_, lite := sqliteCode(err)
	_, post := postgresState(err)
	return lite || post || isAway(err)
}
