package ingest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/retry"
	"trunkline/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

const (
	keyTTL           = 24 * time.Hour
	maxKeyLength     = 255       // bytes of an Idempotency-Key
	maxKeysPerSource = 1_000_000 // of one source within keyTTL, checked once per purgeInterval
	leaseMargin      = 5 * time.Second
	purgeInterval    = time.Minute
	purgeBatch       = 1000 // rows of one statement
	minPoll          = 10 * time.Millisecond
	maxPoll          = 200 * time.Millisecond
)

// keyStore is the table of Idempotency-Keys. A row is written before a body is produced and completed
// when Kafka has acknowledged it. In between the body is leased to one request. After a lease that
// ended without completion Kafka may or may not have the body, and the same body is produced again.
type keyStore struct {
	db        *sqldb.DB
	lease     time.Duration
	overLimit atomic.Pointer[map[string]bool] // sources with maxKeys and more
}

func newKeyStore(ctx context.Context, db *sqldb.DB, lease time.Duration) (*keyStore, error) {
	if err := migrate(ctx, db); err != nil {
		return nil, err
	}
	s := &keyStore{db: db, lease: lease}
	s.overLimit.Store(&map[string]bool{})
	return s, nil
}

func migrate(ctx context.Context, db *sqldb.DB) error {
	return db.Migrate(ctx, "ingest", migrations)
}

// claim is a row of the table and the request's lease of it.
type claim struct {
	account           string // the caller's
	source, key, body string
	holder            string // "" when another request has stored the body
	records           int
	refusal           string // message of fault.KindTooLarge
}

// checkKey refuses keys that cannot be stored.
func checkKey(key string) error {
	ok := len(key) <= maxKeyLength
	for i := range len(key) {
		ok = ok && key[i] > ' ' && key[i] <= '~'
	}
	if !ok {
		return fault.InvalidField("Idempotency-Key", "invalid", "The Idempotency-Key must be 1 to 255 printable ASCII characters without spaces")
	}
	return nil
}

// digest returns a hash that identifies a body.
func digest(format string, body []byte) string {
	hash := sha256.New()
	hash.Write([]byte(format + "\n"))
	hash.Write(body)
	return hex.EncodeToString(hash.Sum(nil))
}

// claim takes the key for the body, or returns the response stored under it. While
// another request stores the same body it waits, until ctx ends. It returns
// fault.KindConflict when the key was used for another body.
func (s *keyStore) claim(ctx context.Context, account, source, key, body string) (*claim, error) {
	if (*s.overLimit.Load())[source] {
		return nil, fault.Limited(purgeInterval, fmt.Sprintf("More than %d Idempotency-Keys were used in 24 hours; send bodies without one", maxKeysPerSource))
	}
	c := &claim{account: account, source: source, key: key, body: body, holder: rand.Text()}
	for wait := minPoll; ; wait = min(2*wait, maxPoll) {
		claimed, err := s.tryClaim(ctx, c)
		if err != nil || claimed {
			return c, err
		}
		stored, err := s.readClaim(ctx, c)
		if err != nil || stored {
			c.holder = ""
			return c, err
		}
		if !retry.Sleep(ctx, wait) {
			return nil, fault.Unavailable(ctx.Err(), time.Second, "Another request with this Idempotency-Key is being stored; send this one again")
		}
	}
}

// tryClaim writes the claim to the table if the key is new or has expired, or if a request with the same body did not
// complete it.
func (s *keyStore) tryClaim(ctx context.Context, c *claim) (claimed bool, err error) {
	now := s.db.ClockExpr()
	rows, err := s.db.ExecWithoutTx(ctx, `INSERT INTO ingest_keys (account_id, source, key, body, records, stored, refusal, holder, lease_until, expires_at)
		VALUES ($1, $2, $3, $4, 0, FALSE, '', $5, `+now+` + $6, `+now+` + $7)
		ON CONFLICT (source, key) DO UPDATE SET body = excluded.body, records = 0, stored = FALSE, refusal = '', holder = excluded.holder,
			lease_until = excluded.lease_until, expires_at = excluded.expires_at
		WHERE ingest_keys.expires_at <= `+now+`
			OR NOT ingest_keys.stored AND ingest_keys.lease_until <= `+now+` AND ingest_keys.body = excluded.body`,
		c.account, c.source, c.key, c.body, c.holder, s.lease.Milliseconds(), keyTTL.Milliseconds())
	return rows == 1 && err == nil, sqldb.Wrap(err, "taking an Idempotency-Key")
}

// readClaim reads a row that another request wrote.
func (s *keyStore) readClaim(ctx context.Context, c *claim) (stored bool, err error) {
	var body string
	err = s.db.QueryRowContext(ctx, `SELECT body, stored, records, refusal FROM ingest_keys WHERE source = $1 AND key = $2`,
		c.source, c.key).Scan(&body, &stored, &c.records, &c.refusal)
	if errors.Is(err, sql.ErrNoRows) { // released meanwhile
		return false, nil
	}
	if err == nil && body != c.body {
		return false, fault.Conflict("The Idempotency-Key was used for another body")
	}
	return stored, sqldb.Wrap(err, "reading an Idempotency-Key")
}

// complete records that Kafka has the body, and the response to repeated requests.
func (s *keyStore) complete(ctx context.Context, c *claim) error {
	return s.update(ctx, "completing an Idempotency-Key",
		`UPDATE ingest_keys SET stored = TRUE, records = $4, refusal = $5 WHERE source = $1 AND key = $2 AND holder = $3`,
		c, c.records, c.refusal)
}

// abandon ends the lease: Kafka may have some of the body, and the same body may
// be sent again.
func (s *keyStore) abandon(ctx context.Context, c *claim) error {
	return s.update(ctx, "abandoning an Idempotency-Key",
		`UPDATE ingest_keys SET lease_until = 0 WHERE source = $1 AND key = $2 AND holder = $3 AND NOT stored`, c)
}

func (s *keyStore) update(ctx context.Context, operation, statement string, c *claim, args ...any) error {
	_, err := s.db.ExecWithoutTx(ctx, statement, append([]any{c.source, c.key, c.holder}, args...)...)
	return sqldb.Wrap(err, operation)
}

// purge deletes expired rows and finds the sources with too many keys.
func (s *keyStore) purge(ctx context.Context) error {
	for more := true; more; {
		rows, err := s.db.ExecWithoutTx(ctx, `DELETE FROM ingest_keys WHERE (source, key) IN
				(SELECT source, key FROM ingest_keys WHERE expires_at <= `+s.db.ClockExpr()+` LIMIT $1)`, purgeBatch)
		more = rows == purgeBatch
		if err != nil {
			return sqldb.Wrap(err, "deleting expired Idempotency-Keys")
		}
	}
	full, err := s.sourcesWithKeys(ctx, maxKeysPerSource)
	if err == nil {
		s.overLimit.Store(&full)
	}
	return sqldb.Wrap(err, "counting Idempotency-Keys")
}

// sourcesWithKeys returns the sources with at least a number of keys.
func (s *keyStore) sourcesWithKeys(ctx context.Context, minKeys int) (_ map[string]bool, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT source FROM ingest_keys GROUP BY source HAVING COUNT(*) >= $1`, minKeys)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	sources := make(map[string]bool)
	for rows.Next() {
		var source string
		if err := rows.Scan(&source); err != nil {
			return nil, err
		}
		sources[source] = true
	}
	return sources, rows.Err()
}
