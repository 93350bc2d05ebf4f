package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"math/rand/v2"
	"time"
)

const (
	attempts   = 12
	firstPause = 2 * time.Millisecond
	lastPause  = 250 * time.Millisecond
)

// retry runs fn again while the database says that the same thing may well
// succeed now: another transaction was in the way.
func retry(ctx context.Context, fn func(context.Context) error) error {
	pause := firstPause
	for attempt := 1; ; attempt++ {
		err := fn(ctx)
		if err == nil || !isBusy(err) || attempt == attempts {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(rand.N(pause) + pause/2):
		}
		pause = min(2*pause, lastPause)
	}
}

func isBusy(err error) bool {
	if code, ok := sqliteCode(err); ok {
		return sqliteBusy(code)
	}
	state, ok := postgresState(err)
	return ok && postgresBusy(state)
}

// IsUnique reports whether a unique constraint (a primary key's included) refused
// the statement.
func IsUnique(err error) bool {
	if code, ok := sqliteCode(err); ok {
		return sqliteUnique(code)
	}
	state, ok := postgresState(err)
	return ok && state == stateUnique
}

// isAway reports whether the fault is the database's or the network's, not the
// statement's: the same statement may succeed later.
func isAway(err error) bool {
	if code, ok := sqliteCode(err); ok {
		return sqliteAway(code)
	}
	if state, ok := postgresState(err); ok {
		return postgresAway(state)
	}
	for _, away := range []error{
		context.Canceled, context.DeadlineExceeded, driver.ErrBadConn, sql.ErrConnDone,
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
