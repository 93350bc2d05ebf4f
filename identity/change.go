package identity

import (
	"context"
	"database/sql"

	"trunkline/audit"
	"trunkline/internal/sqldb"
)

// revisionIncrement has the numbers that a change adds to the counters of revision. A
// change of a user increments revocations and stores the result in the user's row.
type revisionIncrement struct{ directory, revocations int }

var (
	changeDirectory   = revisionIncrement{directory: 1}
	changeRevocations = revisionIncrement{revocations: 1}
	changeBoth        = revisionIncrement{1, 1}
)

// change runs fn in a transaction that increments the revision, and then reloads the data
// in this Service's memory. rev is the new counter of revocations.
//
// The database serializes changes; the semaphore avoids transactions that would fail and
// be run again.
func (s *Service) change(ctx context.Context, increment revisionIncrement, fn func(tx *sql.Tx, rev int64) error) error {
	select {
	case s.changeSlot <- struct{}{}:
		defer func() { <-s.changeSlot }()
	case <-ctx.Done():
		return sqldb.Wrap(ctx.Err(), "waiting for another change")
	}
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		var rev int64
		// The first statement: it serializes changes.
		err := tx.QueryRowContext(ctx, `UPDATE identity_revision
			SET directory = directory + $1, revocations = revocations + $2 RETURNING revocations`,
			increment.directory, increment.revocations).Scan(&rev)
		if err != nil {
			return sqldb.Wrap(err, "incrementing the revision")
		}
		return fn(tx, rev)
	})
	if err != nil {
		return err
	}
	// The change is committed, even if its caller has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pollTimeout)
	defer cancel()
	if err := s.poll(ctx); err != nil {
		s.log.WarnContext(ctx, "snapshot reload failed after a stored change", "error", err)
	}
	return nil
}

// auditedChange is change with an entry of the audit log, whose fields fn may set.
func (s *Service) auditedChange(ctx context.Context, increment revisionIncrement, entry *audit.Entry,
	fn func(tx *sql.Tx, rev int64) error) error {
	var rev int64
	runTx := func(ctx context.Context, inTx func(*sql.Tx) error) error {
		return s.change(ctx, increment, func(tx *sql.Tx, now int64) error {
			rev = now
			return inTx(tx)
		})
	}
	return audit.Tx(ctx, s.audit, runTx, entry, func(tx *sql.Tx) error { return fn(tx, rev) })
}
