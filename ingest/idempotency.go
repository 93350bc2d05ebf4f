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
	"strings"
	"sync/atomic"
	"time"

	"trunkline/event"
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
	// leaseTime is the time after which the key of a process that has ended is free. A process renews its leases
	// every renewInterval.
	leaseTime     = 2500 * time.Millisecond
	renewInterval = 800 * time.Millisecond
	// storeTimeout is longer than the producer works on a record: then the result is known or never will be.
	storeTimeout  = 45 * time.Second
	updateTimeout = 5 * time.Second
	// clockMargin is the largest difference between the clocks of the database and of Kafka's records.
	clockMargin   = time.Minute
	purgeInterval = time.Minute
	// minPoll and maxPoll bound the pauses of a request that waits for another one with its key.
	minPoll = 10 * time.Millisecond
	maxPoll = 200 * time.Millisecond
)

// keyStore is the table of Idempotency-Keys. A row is written before a body is produced and completed
// when Kafka has acknowledged it. In between the body is leased to one request, whose process renews the
// lease. After a lease that ended without completion Kafka may or may not have the body: the next request
// with it looks its records up.
//
// Whoever takes a body over gives its records the identities that the first attempt gave them. A process that
// was stopped for longer than its lease may still send them when it continues, and no look-up can find what
// comes after it: of two copies with one identity the normalizer drops the second.
type keyStore struct {
	db        *sqldb.DB
	ownRun    string                          // of the identities that this process gives to records
	numbers   atomic.Uint64                   // of them that are used
	overLimit atomic.Pointer[map[string]bool] // sources with maxKeysPerSource and more
}

func newKeyStore(ctx context.Context, db *sqldb.DB) (*keyStore, error) {
	if err := migrate(ctx, db); err != nil {
		return nil, err
	}
	s := &keyStore{db: db, ownRun: "body-" + rand.Text()}
	s.overLimit.Store(&map[string]bool{})
	return s, nil
}

func migrate(ctx context.Context, db *sqldb.DB) error {
	return db.Migrate(ctx, "ingest", migrations)
}

// keyClaim is a row of the table and the request's lease of it.
type keyClaim struct {
	account    string         // the caller's
	source     string         // see sourceName
	key        string         // the Idempotency-Key
	bodyDigest string         // see digest
	holder     string         // of the lease, see setHolder; "" when another request has stored the body
	identity   event.Identity // of the first record; the others have the numbers after it
	records    int            // that were stored
	refusal    string         // message of fault.KindTooLarge, "" if all of them were

	// The time within which earlier attempts can have written some of the body; zero if there was none.
	attemptedFrom, attemptedUntil time.Time
}

// isRepeat reports whether Kafka may have some of the body from an earlier attempt.
func (c *keyClaim) isRepeat() bool { return !c.attemptedUntil.IsZero() }

// bodyID returns a hash that identifies the key of a source in the headers of its records.
func (c *keyClaim) bodyID() string {
	hash := sha256.Sum256([]byte(c.source + "\n" + c.key))
	return hex.EncodeToString(hash[:16])
}

// checkKey refuses keys that cannot be stored.
func checkKey(key string) error {
	ok := len(key) <= maxKeyLength
	for i := range len(key) {
		ok = ok && key[i] > ' ' && key[i] <= '~'
	}
	if !ok {
		return fault.InvalidField("Idempotency-Key", "invalid",
			"The Idempotency-Key must be 1 to 255 printable ASCII characters without spaces")
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
func (s *keyStore) claim(ctx context.Context, account, source, key, bodyDigest string,
	records int) (*keyClaim, error) {
	// As of the last purge: a source may exceed the limit by what it sends in a minute.
	if (*s.overLimit.Load())[source] {
		return nil, fault.Limited(purgeInterval,
			fmt.Sprintf("More than %d Idempotency-Keys were used in 24 hours; send bodies without one",
				maxKeysPerSource))
	}

	c := &keyClaim{account: account, source: source, key: key, bodyDigest: bodyDigest}
	c.setHolder(event.Identity{Run: s.ownRun, Number: s.numbers.Add(uint64(records)) - uint64(records)})
	for wait := minPoll; ; wait = min(2*wait, maxPoll) {
		// The statements are conditional: of two requests at once only one changes the row.
		claimed, err := s.claimNew(ctx, c)
		if err != nil || claimed {
			return c, err
		}

		stored, holder, err := s.readClaim(ctx, c)
		if err != nil || stored {
			c.holder = ""
			return c, err
		}

		claimed, err = s.claimAbandoned(ctx, c, holder)
		if err != nil || claimed {
			return c, err
		}

		if !retry.Sleep(ctx, wait) {
			return nil, fault.Unavailable(ctx.Err(), time.Second,
				"Another request with this Idempotency-Key is being stored; send this one again")
		}
	}
}

// setHolder gives the claim a holder of its own, "<identity of the body's first record> <random>", for those who
// take the claim over.
func (c *keyClaim) setHolder(first event.Identity) {
	c.identity, c.holder = first, first.String()+" "+rand.Text()
}

// claimNew writes the claim to the table if the key is new or has expired.
func (s *keyStore) claimNew(ctx context.Context, c *keyClaim) (claimed bool, err error) {
	now := s.db.ClockExpr()
	rows, err := s.db.ExecWithoutTx(ctx,
		`INSERT INTO ingest_keys (account_id, source, key, body, records, stored, refusal, holder, lease_until, expires_at)
		VALUES ($1, $2, $3, $4, 0, FALSE, '', $5, `+now+` + $6, `+now+` + $7)
		ON CONFLICT (source, key) DO UPDATE SET body = excluded.body, records = 0, stored = FALSE, refusal = '', holder = excluded.holder,
			lease_until = excluded.lease_until, expires_at = excluded.expires_at, attempted_until = 0
		WHERE ingest_keys.expires_at <= `+now,
		c.account, c.source, c.key, c.bodyDigest, c.holder, leaseTime.Milliseconds(), keyTTL.Milliseconds())
	return rows == 1 && err == nil, sqldb.Wrap(err, "taking an Idempotency-Key")
}

// claimAbandoned takes over the claim of a holder with the same body that did not complete it, and sets the
// identities of its records and the time of the attempts.
func (s *keyStore) claimAbandoned(ctx context.Context, c *keyClaim, holder string) (claimed bool, err error) {
	taken := *c
	identity, _, _ := strings.Cut(holder, " ")
	first, err := event.ParseIdentity(identity)
	if err == nil { // else a node of a version without identities had it
		taken.setHolder(first)
	}

	now := s.db.ClockExpr()
	rows, err := s.db.ExecWithoutTx(ctx,
		`UPDATE ingest_keys SET attempted_until = lease_until, holder = $3, lease_until = `+now+` + $4
		WHERE source = $1 AND key = $2 AND body = $5 AND holder = $6 AND NOT stored AND lease_until <= `+now,
		c.source, c.key, taken.holder, leaseTime.Milliseconds(), c.bodyDigest, holder)
	if rows != 1 || err != nil {
		return false, sqldb.Wrap(err, "taking over an Idempotency-Key")
	}

	*c = taken

	var until, expires int64
	err = s.db.QueryRowContext(ctx,
		`SELECT attempted_until, expires_at FROM ingest_keys WHERE source = $1 AND key = $2 AND holder = $3`,
		c.source, c.key, c.holder).Scan(&until, &expires)
	// expires_at stays that of the first attempt, so it tells when that began.
	c.attemptedFrom = time.UnixMilli(expires).Add(-keyTTL - clockMargin)
	c.attemptedUntil = time.UnixMilli(until).Add(clockMargin)

	return err == nil, sqldb.Wrap(err, "reading an Idempotency-Key")
}

// readClaim reads a row that another request, its holder, wrote.
func (s *keyStore) readClaim(ctx context.Context, c *keyClaim) (stored bool, holder string, err error) {
	var bodyDigest string
	err = s.db.QueryRowContext(ctx,
		`SELECT body, stored, records, refusal, holder FROM ingest_keys WHERE source = $1 AND key = $2`,
		c.source, c.key).Scan(&bodyDigest, &stored, &c.records, &c.refusal, &holder)
	if errors.Is(err, sql.ErrNoRows) { // released meanwhile
		return false, "", nil
	}
	if err == nil && bodyDigest != c.bodyDigest {
		return false, "", fault.Conflict("The Idempotency-Key was used for another body")
	}

	return stored, holder, sqldb.Wrap(err, "reading an Idempotency-Key")
}

// complete records that Kafka has the body, and the response to repeated requests.
func (s *keyStore) complete(ctx context.Context, c *keyClaim) error {
	return s.update(ctx, "completing an Idempotency-Key",
		`UPDATE ingest_keys SET stored = TRUE, records = $4, refusal = $5 WHERE source = $1 AND key = $2 AND holder = $3`,
		c, c.records, c.refusal)
}

// abandon ends the lease: Kafka may have some of the body, and the same body may
// be sent again.
func (s *keyStore) abandon(ctx context.Context, c *keyClaim) error {
	return s.update(ctx, "abandoning an Idempotency-Key",
		`UPDATE ingest_keys SET lease_until = `+s.db.ClockExpr()+` WHERE source = $1 AND key = $2 AND holder = $3 AND NOT stored`,
		c)
}

// renewUntil renews the lease until ctx ends. An error is one of the database: the lease may end.
func (s *keyStore) renewUntil(ctx context.Context, c *keyClaim) {
	for range retry.Ticks(ctx, renewInterval) {
		_ = s.update(ctx, "renewing an Idempotency-Key",
			`UPDATE ingest_keys SET lease_until = `+s.db.ClockExpr()+` + $4 WHERE source = $1 AND key = $2 AND holder = $3 AND NOT stored`,
			c, leaseTime.Milliseconds())
	}
}

// update changes the row of a claim, whose source, key and holder are the first arguments of the statement. The row
// of another holder stays.
func (s *keyStore) update(ctx context.Context, operation, statement string, c *keyClaim, args ...any) error {
	_, err := s.db.ExecWithoutTx(ctx, statement, append([]any{c.source, c.key, c.holder}, args...)...)
	return sqldb.Wrap(err, operation)
}

// purge deletes expired rows and finds the sources with too many keys.
func (s *keyStore) purge(ctx context.Context) error {
	err := s.db.DeleteAll(ctx, "deleting expired Idempotency-Keys", sqldb.Deletion{Table: "ingest_keys",
		Key: "source, key", Where: "expires_at <= " + s.db.ClockExpr()})
	if err != nil {
		return err
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
