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
	knownAddressTTL      = 30 * 24 * time.Hour
	addressWriteInterval = 24 * time.Hour // between updates of an address that is in use
	maxAddressesPerUser  = 20
	maxCachedAddresses   = 50_000 // some 10 MB
)

// knownAddresses stores hashes of the networks from which users have authenticated: the
// maxAddressesPerUser latest of each user, for knownAddressTTL. The hashes are keyed,
// because addresses are few and plain hashes of them could be reversed. The key is sealed
// under the master key.
type knownAddresses struct {
	db      *sqldb.DB
	keyring *masterkey.Keyring
	now     func() time.Time
	log     *slog.Logger

	lastWritten *boundedCache[string, time.Time] // time of the last write, by hash
	networks    *boundedCache[string, struct{}]  // from which users have authenticated on this node

	mu      sync.Mutex
	hashKey []byte // nil before it is read
}

func newKnownAddresses(db *sqldb.DB, keyring *masterkey.Keyring, now func() time.Time,
	log *slog.Logger) *knownAddresses {
	return &knownAddresses{db: db, keyring: keyring, now: now, log: log,
		lastWritten: newBoundedCache[string, time.Time](maxCachedAddresses),
		networks:    newBoundedCache[string, struct{}](maxCachedAddresses)}
}

// hashNetwork returns the hash of the attempt's user and network.
func (k *knownAddresses) hashNetwork(ctx context.Context, a loginAttempt) (string, error) {
	k.mu.Lock()
	key := k.hashKey
	k.mu.Unlock()

	// The lock is not held during the query: concurrent first calls read the same key.
	if key == nil {
		var err error
		key, err = k.readKey(ctx)
		if err != nil {
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

// addressKeyID is the id of the only row of addressKeyTable.
const addressKeyID = "1"

// readKey returns the key of the hashes. The first call for a database creates it.
func (k *knownAddresses) readKey(ctx context.Context) ([]byte, error) {
	// Sealed before it is known whether the table has one: the statement below stores it or returns the other.
	key := make([]byte, sha256.Size)
	rand.Read(key) // never fails
	sealed, err := k.keyring.Seal(key, addressKeyTable, addressKeyID)
	if err != nil {
		return nil, err
	}

	err = k.db.WithoutTx(ctx, func(to sqldb.Runner) error {
		// DO NOTHING would return no row; this update without effect returns the stored one.
		return to.QueryRowContext(ctx,
			`INSERT INTO identity_address_keys (id, secret, master_key_id) VALUES ($1, $2, $3)
			ON CONFLICT (id) DO UPDATE SET id = excluded.id RETURNING secret`, addressKeyID, sealed,
			masterkey.KeyID(sealed)).Scan(&sealed)
	})
	if err != nil {
		return nil, sqldb.Wrap(err, "reading the key of known addresses")
	}

	return k.keyring.Unseal(sealed, addressKeyTable, addressKeyID)
}

// knownOfUser reports whether the user has authenticated from the network within
// knownAddressTTL. While the database is unavailable it returns false.
func (k *knownAddresses) knownOfUser(ctx context.Context, a loginAttempt) bool {
	var found bool
	hash, err := k.hashNetwork(ctx, a)
	if err == nil {
		err = k.db.QueryRowContext(ctx,
			`SELECT EXISTS (SELECT 1 FROM identity_known_addresses WHERE hash = $1 AND seen_at > $2)`,
			hash, k.now().Add(-knownAddressTTL).UnixMilli()).Scan(&found)
	}
	if err != nil && ctx.Err() == nil {
		k.log.WarnContext(ctx, "looking up a user's known address failed", "error", err)
	}

	return err == nil && found
}

// knownOfAnyone reports whether the attempt's user, or another user on this node, has authenticated
// from its network. It tells nothing about whether the user exists.
func (k *knownAddresses) knownOfAnyone(ctx context.Context, a loginAttempt) bool {
	if a.network == "" {
		return false
	}
	_, known := k.networks.find(a.network)
	return known || k.knownOfUser(ctx, a)
}

// add stores the network of a user who has authenticated. A failure is logged.
func (k *knownAddresses) add(ctx context.Context, a loginAttempt, userID string) {
	if a.network == "" {
		return
	}

	k.networks.put(a.network, struct{}{})
	now := k.now()
	hash, err := k.hashNetwork(ctx, a)
	if err == nil && !k.claimWrite(hash, now) {
		return
	}
	if err == nil {
		err = k.store(ctx, hash, userID, now)
	}
	if err != nil {
		k.lastWritten.delete(hash)
		if ctx.Err() == nil {
			k.log.WarnContext(ctx, "storing a user's known address failed", "user_id", userID, "error", err)
		}
	}
}

// store stores a hash and deletes the user's oldest above maxAddressesPerUser.
func (k *knownAddresses) store(ctx context.Context, hash, userID string, now time.Time) error {
	_, err := k.db.ExecContext(ctx, `INSERT INTO identity_known_addresses (hash, user_id, seen_at) VALUES ($1, $2, $3)
		ON CONFLICT (hash) DO UPDATE SET seen_at = excluded.seen_at, user_id = excluded.user_id`, hash, userID,
		now.UnixMilli())
	if err == nil {
		_, err = k.db.ExecContext(ctx, `DELETE FROM identity_known_addresses WHERE user_id = $1 AND hash NOT IN
			(SELECT hash FROM identity_known_addresses WHERE user_id = $1 ORDER BY seen_at DESC, hash LIMIT $2)`,
			userID, maxAddressesPerUser)
	}
	return err
}

// claimWrite reports whether the caller must store the address, and marks it as stored.
func (k *knownAddresses) claimWrite(hash string, now time.Time) bool {
	if writtenAt, ok := k.lastWritten.find(hash); ok && now.Sub(writtenAt) < addressWriteInterval {
		return false
	}
	k.lastWritten.put(hash, now)
	return true
}

// deleteExpired deletes addresses that have not been used for knownAddressTTL.
func (k *knownAddresses) deleteExpired(ctx context.Context) error {
	_, err := k.db.ExecContext(ctx, `DELETE FROM identity_known_addresses WHERE seen_at <= $1`,
		k.now().Add(-knownAddressTTL).UnixMilli())
	return sqldb.Wrap(err, "deleting old addresses of users")
}
