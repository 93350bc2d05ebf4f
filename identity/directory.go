package identity

import (
	"cmp"
	"context"
	"slices"
	"time"

	"trunkline/internal/sqldb"
)

// directory is a snapshot of the accounts, API keys and signing keys in memory. It is
// immutable, except for its cache of verified tokens.
type directory struct {
	tree     *Tree
	byHash   map[string]APIKey // by hashSecret of the key
	keys     map[string]APIKey // by id
	expiry   []time.Time       // of the keys that expire, in order
	signing  signingKeys
	jwks     []byte
	verified tokenCache
}

// expiresIn reports whether a key expires after one time and not after another.
func (d *directory) expiresIn(after, until time.Time) bool {
	next, _ := slices.BinarySearchFunc(d.expiry, after, func(one, after time.Time) int {
		return cmp.Or(one.Compare(after), -1)
	})
	return next < len(d.expiry) && !d.expiry[next].After(until)
}

// readDirectory reads without a transaction: a concurrent change has a later revision,
// so the next poll reads it again.
func (s *Service) readDirectory(ctx context.Context) (*directory, error) {
	accounts, err := listAccounts(ctx, s.db)
	if err != nil {
		return nil, err
	}
	tree, stray := buildTree(accounts)
	if len(stray) > 0 {
		s.log.ErrorContext(ctx, "accounts without a root ignored", "accounts", len(stray), "first", stray[0])
	}
	d := &directory{tree: tree, verified: newTokenCache()}
	if d.byHash, d.keys, err = readKeyHashes(ctx, s.db); err != nil {
		return nil, err
	}
	for _, key := range d.keys {
		if !key.ExpiresAt.IsZero() {
			d.expiry = append(d.expiry, key.ExpiresAt)
		}
	}
	slices.SortFunc(d.expiry, time.Time.Compare)
	if d.signing, err = s.readSigningKeys(ctx, s.db); err != nil {
		return nil, err
	}
	if d.jwks, err = d.signing.jwks(); err != nil {
		return nil, err
	}
	return d, nil
}

func readKeyHashes(ctx context.Context, db sqldb.Runner) (byHash, byID map[string]APIKey, err error) {
	byHash, byID = make(map[string]APIKey), make(map[string]APIKey)
	rows, err := db.QueryContext(ctx, `SELECT hash, `+apiKeyColumns+` FROM identity_api_keys`)
	_, err = sqldb.Collect(rows, err, "reading API keys", func(scan sqldb.ScanFunc) (struct{}, error) {
		var hash string
		key, err := scanAPIKey(scan, &hash)
		byHash[hash], byID[key.ID] = key, key
		return struct{}{}, err
	})
	return byHash, byID, err
}

// revision has the numbers of the last changes that memory includes.
type revision struct{ directory, revocations int64 }

func readRevision(ctx context.Context, db sqldb.Runner) (revision, error) {
	var r revision
	err := db.QueryRowContext(ctx, `SELECT directory, revocations FROM identity_revision`).
		Scan(&r.directory, &r.revocations)
	return r, sqldb.Wrap(err, "reading the revision")
}
