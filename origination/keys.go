package origination

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

const (
	keyLife    = 24 * time.Hour
	mostKey    = 255 // bytes
	firstCheck = 10 * time.Millisecond
	lastCheck  = 200 * time.Millisecond
)

// keys is the table of Idempotency-Keys. A key belongs to whoever placed, or is
// placing, a call under it.
type keys struct {
	db *sqldb.DB
	// together runs a statement in a transaction with others, perhaps several
	// times, and tells done what became of it.
	together func(statement func(context.Context, sqldb.Runner) error, done func(error))
}

// run runs a statement and waits for it.
func (k keys) run(ctx context.Context, doing string, statement func(context.Context, sqldb.Runner) error) error {
	done := make(chan error, 1)
	k.together(statement, func(err error) { done <- err })
	return sqldb.Wrap(outcome(done).wait(ctx), doing)
}

// claim is what the table says of a key.
type claim struct {
	mine        bool // the caller is to place the call
	destination string
	done        bool
	callID      string // when done
}

func checkKey(key string) error {
	bad := key != "" && (len(key) > mostKey || !validID(key))
	if bad {
		return fault.InvalidField("Idempotency-Key", "invalid", "The Idempotency-Key must be 1 to 255 printable ASCII characters without spaces")
	}
	return nil
}

// claim takes the key for an order, unless it is taken. It is free again when
// its day is over, and when who took it died before there was a call: then
// nothing can have rung. Where there was one, that call is the answer.
func (k keys) claim(ctx context.Context, userID, key, destination, orderID string, lease time.Duration) (c claim, err error) {
	now := clock(k.db)
	mine := false // run's, until it has returned without an error: who gave up waiting may not look
	err = k.run(ctx, "taking an idempotency key", func(ctx context.Context, tx sqldb.Runner) error {
		result, err := tx.ExecContext(ctx, `INSERT INTO origination_keys
			(user_id, key, destination, order_id, call_id, done, lease_until, expires_at)
			VALUES ($1, $2, $3, $4, '', FALSE, `+now+` + $5, `+now+` + $6)
			ON CONFLICT (user_id, key) DO UPDATE SET destination = excluded.destination, order_id = excluded.order_id,
				call_id = '', done = FALSE, lease_until = excluded.lease_until, expires_at = excluded.expires_at
			WHERE origination_keys.expires_at <= `+now+` OR NOT origination_keys.done AND origination_keys.lease_until <= `+now+`
				AND origination_keys.destination = excluded.destination
				AND NOT EXISTS (SELECT 1 FROM origination_calls WHERE id = origination_keys.order_id)`,
			userID, key, destination, orderID, lease.Milliseconds(), keyLife.Milliseconds())
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		mine = n == 1
		return err
	})
	if err != nil || mine {
		return claim{mine: err == nil}, err
	}
	return k.look(ctx, userID, key, destination)
}

// look reads a key without taking it; an unknown one is neither mine nor done.
func (k keys) look(ctx context.Context, userID, key, destination string) (c claim, err error) {
	err = k.db.QueryRowContext(ctx, `SELECT k.destination, k.done OR k.lease_until <= `+clock(k.db)+` AND c.id IS NOT NULL,
			CASE WHEN k.done THEN k.call_id ELSE COALESCE(c.call_id, '') END
		FROM origination_keys k LEFT JOIN origination_calls c ON c.id = k.order_id
		WHERE k.user_id = $1 AND k.key = $2 AND k.expires_at > `+clock(k.db), userID, key).Scan(&c.destination, &c.done, &c.callID)
	if errors.Is(err, sql.ErrNoRows) {
		return claim{destination: destination}, nil
	}
	return c, sqldb.Wrap(err, "reading an idempotency key")
}

// settle says what was answered under the key. Nobody waits for it: until then
// the call itself is the answer, once the lease is over.
func (k keys) settle(orderID, userID, key, callID string, done func(error)) {
	k.together(func(ctx context.Context, tx sqldb.Runner) error {
		_, err := tx.ExecContext(ctx, `UPDATE origination_keys SET done = TRUE, call_id = $1
			WHERE user_id = $2 AND key = $3 AND order_id = $4`, callID, userID, key, orderID)
		return err
	}, done)
}

// release gives the key back: nothing was placed under it.
func (k keys) release(ctx context.Context, orderID, userID, key string) error {
	return k.run(ctx, "giving an idempotency key back", func(ctx context.Context, tx sqldb.Runner) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM origination_keys WHERE user_id = $1 AND key = $2 AND order_id = $3 AND NOT done`,
			userID, key, orderID)
		return err
	})
}
