package identity

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

const (
	addressLife     = 30 * 24 * time.Hour
	addressRefresh  = 24 * time.Hour // a stored address is written again after this time
	addressesOfUser = 20
	addressCacheMax = 50_000 // some 10 MB
)

// knownAddresses stores the networks from which users have authenticated, as hashes: the
// addressesOfUser latest of each user, for addressLife. The hashes have a key, which is
// sealed under the master key: few addresses exist, so that hashes without one could be
// reversed.
type knownAddresses struct {
	db      *sqldb.DB
	keyring *masterkey.Keyring
	now     func() time.Time
	log     *slog.Logger

	written *cache[string, time.Time] // by hash; saves writes

	mu      sync.Mutex
	hashKey []byte // nil: not read yet
}

func newKnownAddresses(db *sqldb.DB, keyring *masterkey.Keyring, now func() time.Time, log *slog.Logger) *knownAddresses {
	return &knownAddresses{db: db, keyring: keyring, now: now, log: log, written: newCache[string, time.Time](addressCacheMax)}
}

// hash returns the hash of the attempt's user and network.
func (k *knownAddresses) hash(ctx context.Context, a attempt) (string, error) {
	k.mu.Lock()
	key := k.hashKey
	k.mu.Unlock()
	if key == nil {
		var err error
		if key, err = k.readKey(ctx); err != nil {
			return "", err
		}
		k.mu.Lock()
		k.hashKey = key
		k.mu.Unlock()
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(a.user + "\x00" + a.network))
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// addressKeyID is the id of the only row of addressPlace.
const addressKeyID = "1"

// readKey returns the key of the hashes; the first call for a database creates it.
func (k *knownAddresses) readKey(ctx context.Context) ([]byte, error) {
	key := make([]byte, sha256.Size)
	rand.Read(key) // never fails
	sealed, err := k.keyring.Seal(key, addressPlace, addressKeyID)
	if err != nil {
		return nil, err
	}
	err = k.db.WithoutTx(ctx, func(to sqldb.Runner) error {
		// Without a change, RETURNING has no row.
		return to.QueryRowContext(ctx, `INSERT INTO identity_address_keys (id, secret, master_key_id) VALUES ($1, $2, $3)
			ON CONFLICT (id) DO UPDATE SET id = excluded.id RETURNING secret`, addressKeyID, sealed, masterkey.KeyID(sealed)).Scan(&sealed)
	})
	if err != nil {
		return nil, sqldb.Wrap(err, "reading the key of known addresses")
	}
	return k.keyring.Unseal(sealed, addressPlace, addressKeyID)
}

// known reports whether the user has authenticated from the network within
// addressLife. While the database is unavailable it reports false.
func (k *knownAddresses) known(ctx context.Context, a attempt) bool {
	var found bool
	hash, err := k.hash(ctx, a)
	if err == nil {
		err = k.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM identity_known_addresses WHERE hash = $1 AND seen_at > $2)`,
			hash, k.now().Add(-addressLife).UnixMilli()).Scan(&found)
	}
	if err != nil && ctx.Err() == nil {
		k.log.WarnContext(ctx, "looking up a user's known address failed", "error", err)
	}
	return err == nil && found
}

// add stores the network of a user who has authenticated. A failure is logged.
func (k *knownAddresses) add(ctx context.Context, a attempt, userID string) {
	if a.network == "" {
		return
	}
	now := k.now()
	hash, err := k.hash(ctx, a)
	if err == nil && !k.due(hash, now) {
		return
	}
	if err == nil {
		err = k.write(ctx, hash, userID, now)
	}
	if err != nil {
		k.written.delete(hash)
		if ctx.Err() == nil {
			k.log.WarnContext(ctx, "storing a user's known address failed", "user_id", userID, "error", err)
		}
	}
}

// write stores a hash and deletes the user's oldest above addressesOfUser.
func (k *knownAddresses) write(ctx context.Context, hash, userID string, now time.Time) error {
	_, err := k.db.ExecContext(ctx, `INSERT INTO identity_known_addresses (hash, user_id, seen_at) VALUES ($1, $2, $3)
		ON CONFLICT (hash) DO UPDATE SET seen_at = excluded.seen_at, user_id = excluded.user_id`, hash, userID, now.UnixMilli())
	if err == nil {
		_, err = k.db.ExecContext(ctx, `DELETE FROM identity_known_addresses WHERE user_id = $1 AND hash NOT IN
			(SELECT hash FROM identity_known_addresses WHERE user_id = $1 ORDER BY seen_at DESC, hash LIMIT $2)`, userID, addressesOfUser)
	}
	return err
}

// due reports whether the address is to be written, and marks it as written.
func (k *knownAddresses) due(hash string, now time.Time) bool {
	if at, ok := k.written.find(hash); ok && now.Sub(at) < addressRefresh {
		return false
	}
	k.written.put(hash, now)
	return true
}

// deleteExpired deletes addresses that have not been used for addressLife.
func (k *knownAddresses) deleteExpired(ctx context.Context) error {
	_, err := k.db.ExecContext(ctx, `DELETE FROM identity_known_addresses WHERE seen_at <= $1`, k.now().Add(-addressLife).UnixMilli())
	return sqldb.Wrap(err, "deleting old addresses of users")
}
