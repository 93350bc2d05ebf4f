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
	keyTTL       = 24 * time.Hour
	minCheckWait = 10 * time.Millisecond // pauses of a request that waits for another one with its key
	maxCheckWait = 200 * time.Millisecond
)

// idempotencyKeys is the table of Idempotency-Keys. A key belongs to the order that was placed, or is being
// placed, with it.
type idempotencyKeys struct {
	db     *sqldb.DB
	writes limitedWrites
}

// exec runs a statement and returns the number of rows that it changed.
func (k idempotencyKeys) exec(ctx context.Context, doing, statement string, args ...any) (rows int, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	rows, err = k.writes.exec(ctx, statement, args...)
	return rows, sqldb.Wrap(err, doing)
}

// keyState is what a request finds of its key.
type keyState struct {
	acquired    bool   // the caller holds the key and places the call
	destination string // of the order that has the key
	done        bool   // that order was placed: a repeat gets callID
	callID      string // set if done; "" also where the platform gave no id
}

func checkKey(key string) error {
	if key != "" && !ValidID(key) {
		return fault.InvalidField("Idempotency-Key", "invalid",
			"The Idempotency-Key must be 1 to 255 printable ASCII characters without spaces")
	}
	return nil
}

// claim claims the key for an order unless it is taken. A key becomes free after keyTTL, and when its
// order's lease has expired and the order was never stored, so that no phone has rung. If the order was
// stored, the key's response has the id of its call.
func (k idempotencyKeys) claim(ctx context.Context, accountID, userID, key, destination, orderID string,
	lease time.Duration) (c keyState, err error) {
	now := k.db.ClockExpr()
	n, err := k.exec(ctx, "taking an idempotency key", `INSERT INTO origination_keys
			(account_id, user_id, key, destination, order_id, call_id, done, lease_until, expires_at)
		VALUES ($1, $2, $3, $4, $5, '', FALSE, `+now+` + $6, `+now+` + $7)
		ON CONFLICT (user_id, key) DO UPDATE SET destination = excluded.destination, order_id = excluded.order_id,
			call_id = '', done = FALSE, lease_until = excluded.lease_until, expires_at = excluded.expires_at
		WHERE origination_keys.expires_at <= `+now+` OR NOT origination_keys.done AND origination_keys.lease_until <= `+now+`
			AND origination_keys.destination = excluded.destination
			AND NOT EXISTS (SELECT 1 FROM origination_calls WHERE id = origination_keys.order_id)`,
		accountID, userID, key, destination, orderID, lease.Milliseconds(), keyTTL.Milliseconds())
	if err != nil || n == 1 {
		return keyState{acquired: err == nil}, err
	}

	return k.find(ctx, userID, key, destination)
}

// find reads a key without claiming it. For an unknown key neither acquired nor done is set.
func (k idempotencyKeys) find(ctx context.Context, userID, key, destination string) (c keyState, err error) {
	err = k.db.QueryRowContext(ctx,
		`SELECT k.destination, k.done OR k.lease_until <= `+k.db.ClockExpr()+` AND c.id IS NOT NULL,
			CASE WHEN k.done THEN k.call_id ELSE COALESCE(c.call_id, '') END
		FROM origination_keys k LEFT JOIN origination_calls c ON c.id = k.order_id
		WHERE k.user_id = $1 AND k.key = $2 AND k.expires_at > `+k.db.ClockExpr(), userID, key).Scan(&c.destination,
		&c.done, &c.callID)
	if errors.Is(err, sql.ErrNoRows) {
		return keyState{destination: destination}, nil
	}

	return c, sqldb.Wrap(err, "reading an idempotency key")
}

// complete stores the response of a key. If it fails, the response has the id of the order's call once
// the lease has expired.
func (k idempotencyKeys) complete(ctx context.Context, orderID, userID, key, callID string) error {
	_, err := k.exec(ctx, "completing an idempotency key", `UPDATE origination_keys SET done = TRUE, call_id = $1
		WHERE user_id = $2 AND key = $3 AND order_id = $4`, callID, userID, key, orderID)
	return err
}

// deleteUnplaced frees the key of an order that was not placed.
func (k idempotencyKeys) deleteUnplaced(ctx context.Context, orderID, userID, key string) error {
	_, err := k.exec(ctx, "releasing an idempotency key", `DELETE FROM origination_keys
		WHERE user_id = $1 AND key = $2 AND order_id = $3 AND NOT done`, userID, key, orderID)
	return err
}
