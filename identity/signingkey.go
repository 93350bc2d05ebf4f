package identity

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// signingKey signs tokens from signsFrom until the next key does.
type signingKey struct {
	id        string
	private   ed25519.PrivateKey
	signsFrom time.Time
}

func (k signingKey) public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

// signingKeys are all keys that are known, by rising signsFrom.
type signingKeys []signingKey

// signer returns the key that signs now. Where our clock is behind that of the
// node that made the first key, it is the first key all the same.
func (keys signingKeys) signer(now time.Time) (signingKey, error) {
	if len(keys) == 0 {
		return signingKey{}, fault.Internal(errors.New("there is no signing key"), "Tokens cannot be signed")
	}
	for i := len(keys) - 1; i > 0; i-- {
		if !keys[i].signsFrom.After(now) {
			return keys[i], nil
		}
	}
	return keys[0], nil
}

func (keys signingKeys) find(id string) (signingKey, bool) {
	for _, key := range keys {
		if key.id == id {
			return key, true
		}
	}
	return signingKey{}, false
}

// next returns when the key after the newest should sign, and whether it is
// time to make it.
func (keys signingKeys) next(now time.Time, cfg Config) (signsFrom time.Time, due bool) {
	if len(keys) == 0 {
		return now, true
	}
	turn := keys[len(keys)-1].signsFrom.Add(cfg.KeyLife)
	published := now.Add(cfg.KeyLead)
	if turn.After(published) {
		return time.Time{}, false
	}
	return published, true
}

// retired lists the keys whose last token has expired.
func (keys signingKeys) retired(now time.Time) []string {
	var ids []string
	for i := range len(keys) - 1 {
		if keys[i+1].signsFrom.Add(maxTokenTTL).Before(now) {
			ids = append(ids, keys[i].id)
		}
	}
	return ids
}

// jwks returns the JSON Web Key Set (RFC 7517, RFC 8037) of the public keys.
func (keys signingKeys) jwks() ([]byte, error) {
	type jwk struct {
		Kty string `json:"kty"`
		Crv string `json:"crv"`
		Kid string `json:"kid"`
		X   string `json:"x"`
		Use string `json:"use"`
		Alg string `json:"alg"`
	}
	set := struct {
		Keys []jwk `json:"keys"`
	}{Keys: make([]jwk, 0, len(keys))}
	for _, key := range keys {
		x := base64.RawURLEncoding.EncodeToString(key.public())
		set.Keys = append(set.Keys, jwk{"OKP", "Ed25519", key.id, x, "sig", signingAlgorithm})
	}
	return json.Marshal(set)
}

// rotateKeys makes the next signing key when it is time, and deletes retired
// ones. Nodes that do it at once agree: changes take turns, and each looks
// again inside its own.
func (s *Service) rotateKeys(ctx context.Context) error {
	now := s.cfg.Now()
	known := s.directory.Load().signing
	if _, due := known.next(now, s.cfg); !due && len(known.retired(now)) == 0 {
		return nil
	}
	return s.change(ctx, changeDirectory, func(tx *sql.Tx, _ int64) error {
		keys, err := readSigningKeys(ctx, tx)
		if err != nil {
			return err
		}
		if signsFrom, due := keys.next(now, s.cfg); due {
			if err := insertSigningKey(ctx, tx, signsFrom, now); err != nil {
				return err
			}
		}
		for _, id := range keys.retired(now) {
			if _, err := tx.ExecContext(ctx, `DELETE FROM identity_signing_keys WHERE id = $1`, id); err != nil {
				return sqldb.Wrap(err, "deleting a retired signing key")
			}
		}
		return nil
	})
}

func insertSigningKey(ctx context.Context, tx *sql.Tx, signsFrom, now time.Time) error {
	seed := make([]byte, ed25519.SeedSize)
	rand.Read(seed) // never fails
	_, err := tx.ExecContext(ctx,
		`INSERT INTO identity_signing_keys (id, seed, signs_from, created_at) VALUES ($1, $2, $3, $4)`,
		newID(), base64.StdEncoding.EncodeToString(seed), signsFrom.UnixMilli(), now.UnixMilli())
	return sqldb.Wrap(err, "storing a signing key")
}

func readSigningKeys(ctx context.Context, db sqldb.Runner) (signingKeys, error) {
	const doing = "reading the signing keys"
	rows, err := db.QueryContext(ctx, `SELECT id, seed, signs_from FROM identity_signing_keys ORDER BY signs_from, id`)
	return sqldb.Collect(rows, err, doing, func(scan sqldb.ScanFunc) (signingKey, error) {
		var key signingKey
		var encoded string
		var signsFrom int64
		if err := scan(&key.id, &encoded, &signsFrom); err != nil {
			return key, err
		}
		seed, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(seed) != ed25519.SeedSize {
			return key, fault.Internal(errors.New("signing key "+key.id+" is not an Ed25519 seed"), doing+" failed")
		}
		key.private = ed25519.NewKeyFromSeed(seed)
		key.signsFrom = time.UnixMilli(signsFrom)
		return key, nil
	})
}
