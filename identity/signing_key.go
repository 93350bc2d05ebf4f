package identity

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

// signingKey signs tokens from signsFrom until that of the next key.
type signingKey struct {
	id        string
	public    ed25519.PublicKey
	private   ed25519.PrivateKey // nil if it could not be unsealed
	unsealErr error              // reason if private is nil
	signsFrom time.Time
}

// signingKeys are all known keys, by rising signsFrom.
type signingKeys []signingKey

// signer returns the key that signs at now. Before the signsFrom of the first key it
// returns that key, because the clock of the node that created it may be ahead.
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

// next reports whether the next key has to be created now, and returns its signsFrom.
func (keys signingKeys) next(now time.Time) (signsFrom time.Time, due bool) {
	if len(keys) == 0 {
		return now, true
	}
	nextSignsFrom := keys[len(keys)-1].signsFrom.Add(signingKeyPeriod)
	earliest := now.Add(signingKeyLead)
	if nextSignsFrom.After(earliest) {
		return time.Time{}, false
	}
	return earliest, true
}

// retired lists the keys whose last token has expired.
func (keys signingKeys) retired(now time.Time) []string {
	var ids []string
	for i := range len(keys) - 1 {
		// A key signs until the next one does, and its last token lives for maxTokenTTL at most.
		if keys[i+1].signsFrom.Add(maxTokenTTL).Before(now) {
			ids = append(ids, keys[i].id)
		}
	}
	return ids
}

// keySet returns the JSON Web Key Set (RFC 7517, RFC 8037) of the public keys.
func (keys signingKeys) keySet() ([]byte, error) {
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
		x := base64.RawURLEncoding.EncodeToString(key.public)
		set.Keys = append(set.Keys, jwk{"OKP", "Ed25519", key.id, x, "sig", signingAlgorithm})
	}

	return json.Marshal(set)
}

// loadedSigningKeys is the keys in memory. It is immutable, except for its cache of verified tokens.
type loadedSigningKeys struct {
	keys           signingKeys
	jwks           []byte
	verifiedTokens tokenCache
}

// reloadSigningKeys reads the keys from the database.
func (t *Tokens) reloadSigningKeys(ctx context.Context) error {
	keys, err := readSigningKeys(ctx, t.db, t.keyring)
	if err != nil {
		return err
	}

	jwks, err := keys.keySet()
	if err != nil {
		return err
	}

	t.signing.Store(&loadedSigningKeys{keys: keys, jwks: jwks, verifiedTokens: newTokenCache()})
	return nil
}

// JWKS returns the JSON Web Key Set for the verification of tokens. Callers must not
// modify it.
func (t *Tokens) JWKS() []byte { return t.signing.Load().jwks }

// PrepareSigning seals the signing keys that an earlier version stored in plain text and
// creates the first key. It returns an error if there is no master key: such a node can
// verify tokens, but not issue them.
func (t *Tokens) PrepareSigning(ctx context.Context) error {
	_, err := t.keyring.NewestID()
	if err != nil {
		return err
	}
	if err := secretTable(t.db, t.keyring, signingKeyTable, "id", "seed").Require(ctx); err != nil {
		return err
	}
	return errors.Join(t.sealSigningKeys(ctx), t.rotateKeys(ctx))
}

// hasMasterKey reports whether this node can seal, and thus create signing keys. If not,
// other nodes create them.
func (t *Tokens) hasMasterKey() bool {
	_, err := t.keyring.NewestID()
	return err == nil
}

// sealSigningKeys seals keys that are stored in plain text. It does not increment the
// revision: the keys do not change, and nodes of an earlier version, which cannot read a
// sealed key, continue with those in memory.
func (t *Tokens) sealSigningKeys(ctx context.Context) error {
	sealed := 0
	err := t.db.Tx(ctx, func(tx *sql.Tx) error {
		rows, err := tx.QueryContext(ctx, `SELECT id, seed FROM identity_signing_keys WHERE master_key_id = ''`)
		plain, err := sqldb.Collect(rows, err, "reading plain signing keys",
			func(scan sqldb.ScanFunc) (row [2]string, err error) {
				err = scan(&row[0], &row[1])
				return row, err
			})
		if err != nil {
			return err
		}

		sealed = len(plain)
		for _, row := range plain {
			if err := sealSigningKey(ctx, tx, t.keyring, row[0], row[1]); err != nil {
				return err
			}
		}

		return nil
	})
	if err == nil && sealed > 0 {
		t.log.WarnContext(ctx,
			"signing keys sealed under the master key: copies of the database made before this still "+
				"contain them in plain text, run \"trunkline signingkey rotate --now\" to make those worthless",
			"keys", sealed)
	}

	return err
}

func sealSigningKey(ctx context.Context, tx *sql.Tx, keyring *masterkey.Keyring, id, encoded string) error {
	seed, err := decodeSeed(id, encoded)
	if err != nil {
		return err
	}

	sealed, err := keyring.Seal(seed, signingKeyTable, id)
	if err != nil {
		return err
	}

	_, err = tx.ExecContext(ctx, `UPDATE identity_signing_keys SET seed = $1, master_key_id = $2, public_key = $3
		WHERE id = $4`, sealed, masterkey.KeyID(sealed), encodePublicKey(seed), id)
	return sqldb.Wrap(err, "sealing a signing key")
}

// rotateKeys creates the next signing key if it is due, and deletes retired ones. It is
// safe on several nodes at once: changes are serialized, and each reads the keys again
// in its transaction.
func (t *Tokens) rotateKeys(ctx context.Context) error {
	now := t.cfg.Now()
	known := t.signing.Load().keys
	_, due := known.next(now)
	if !due && len(known.retired(now)) == 0 {
		return nil
	}

	return t.directory.changes.tx(ctx, changeDirectory, func(tx *sql.Tx, _ int64) error {
		keys, err := readSigningKeys(ctx, tx, t.keyring)
		if err != nil {
			return err
		}

		signsFrom, due := keys.next(now)
		if due {
			_, err := insertSigningKey(ctx, tx, t.keyring, signsFrom, now)
			if err != nil {
				return err
			}
		}

		for _, id := range keys.retired(now) {
			if err := deleteSigningKey(ctx, tx, id); err != nil {
				return err
			}
		}

		return nil
	})
}

// RotateSigningKey creates a key that signs at once and returns its id. It deletes a
// key that was published but has not signed yet. With endTokens it deletes all other
// keys and all refresh tokens, which ends all sessions.
func (t *Tokens) RotateSigningKey(ctx context.Context, endTokens bool) (id string, err error) {
	entry := t.audit.Entry(ctx, audit.SigningKeyRotate, "", "")
	err = t.directory.changes.auditedTx(ctx, changeBoth, &entry, func(tx *sql.Tx, _ int64) error {
		keys, err := readSigningKeys(ctx, tx, t.keyring)
		if err != nil {
			return err
		}

		now := t.cfg.storedNow()
		from := now
		current, err := keys.signer(now)
		if err == nil && !current.signsFrom.Before(now) { // the clock of another node is ahead
			from = current.signsFrom.Add(time.Millisecond)
		}

		for _, key := range keys {
			if endTokens || key.signsFrom.After(current.signsFrom) {
				if err := deleteSigningKey(ctx, tx, key.id); err != nil {
					return err
				}
			}
		}

		if endTokens {
			_, err := tx.ExecContext(ctx, `DELETE FROM identity_refresh_tokens`)
			if err != nil {
				return sqldb.Wrap(err, "ending all sessions")
			}
		}

		id, err = insertSigningKey(ctx, tx, t.keyring, from, now)
		if err != nil {
			return err
		}

		entry.Target = "signingkey:" + id
		return nil
	})
	if err != nil {
		return "", err
	}

	t.log.InfoContext(ctx, "signing key rotated", "key_id", id, "tokens_ended", endTokens)
	return id, nil
}

func deleteSigningKey(ctx context.Context, tx *sql.Tx, id string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM identity_signing_keys WHERE id = $1`, id)
	return sqldb.Wrap(err, "deleting a signing key")
}

func insertSigningKey(ctx context.Context, tx *sql.Tx, keyring *masterkey.Keyring,
	signsFrom, now time.Time) (id string, err error) {
	seed := make([]byte, ed25519.SeedSize)
	rand.Read(seed) // never fails
	id = sqldb.NewID()
	sealed, err := keyring.Seal(seed, signingKeyTable, id)
	if err != nil {
		return "", err
	}

	_, err = tx.ExecContext(ctx, `INSERT INTO identity_signing_keys
			(id, seed, master_key_id, public_key, signs_from, created_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		id, sealed, masterkey.KeyID(sealed), encodePublicKey(seed), signsFrom.UnixMilli(), now.UnixMilli())

	return id, sqldb.Wrap(err, "storing a signing key")
}

func encodePublicKey(seed []byte) string {
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	return base64.StdEncoding.EncodeToString(public)
}

func decodeSeed(id, encoded string) ([]byte, error) {
	seed, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, fault.Internal(fmt.Errorf("signing key %s is not an Ed25519 seed", id),
			"reading the signing keys failed")
	}
	return seed, nil
}

func readSigningKeys(ctx context.Context, db sqldb.Runner, keyring *masterkey.Keyring) (signingKeys, error) {
	rows, err := db.QueryContext(ctx, `SELECT id, seed, master_key_id, public_key, signs_from
		FROM identity_signing_keys ORDER BY signs_from, id`)
	return sqldb.Collect(rows, err, "reading the signing keys", func(scan sqldb.ScanFunc) (signingKey, error) {
		var key signingKey
		var stored, masterKeyID, public string
		var signsFrom int64
		if err := scan(&key.id, &stored, &masterKeyID, &public, &signsFrom); err != nil {
			return key, err
		}

		key.signsFrom = time.UnixMilli(signsFrom)
		if masterKeyID == "" {
			seed, err := decodeSeed(key.id, stored)
			if err != nil {
				return key, err
			}
			key.setSeed(seed)
			return key, nil
		}

		seed, err := keyring.Unseal(stored, signingKeyTable, key.id)
		if err == nil && len(seed) == ed25519.SeedSize {
			key.setSeed(seed)
			return key, nil
		}

		// No error: without the master key a node still verifies tokens, which needs the public key only.
		key.unsealErr = fmt.Errorf("unsealing signing key %s: %w", key.id, err)
		decoded, err := base64.StdEncoding.DecodeString(public)
		if err != nil || len(decoded) != ed25519.PublicKeySize {
			return key, fault.Internal(fmt.Errorf("signing key %s has no Ed25519 public key", key.id),
				"reading the signing keys failed")
		}

		key.public = decoded
		return key, nil
	})
}

// setSeed sets the private and the public key of an Ed25519 seed.
func (k *signingKey) setSeed(seed []byte) {
	k.private = ed25519.NewKeyFromSeed(seed)
	k.public = k.private.Public().(ed25519.PublicKey)
}
