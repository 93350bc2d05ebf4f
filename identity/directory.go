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
	tree           *Tree
	keysByHash     map[string]APIKey // by hashSecret of the key
	keysByID       map[string]APIKey // by id
	keyExpiries    []time.Time       // expiry times of API keys, ascending
	signingKeys    signingKeys
	jwks           []byte
	verifiedTokens tokenCache
}

// keyExpiredBetween reports whether an API key expires after the time after and not later
// than until.
func (d *directory) keyExpiredBetween(after, until time.Time) bool {
	next, _ := slices.BinarySearchFunc(d.keyExpiries, after, func(expiry, after time.Time) int {
		return cmp.Or(expiry.Compare(after), -1)
	})
	return next < len(d.keyExpiries) && !d.keyExpiries[next].After(until)
}

// readDirectory reads the directory from the database in two steps, and stores each: first
// the keys, because their deletion must not wait for a large tree, with the tree of before,
// and then the tree. It uses no transaction: a concurrent change has a later revision, so
// the next poll reads it again.
func (s *Service) readDirectory(ctx context.Context) error {
	d := &directory{tree: &Tree{}, verifiedTokens: newTokenCache()}
	before := s.directory.Load()
	if before != nil {
		d.tree = before.tree
	}
	if err := s.readKeys(ctx, d); err != nil {
		return err
	}
	s.directory.Store(d)

	accounts, err := selectAccounts(ctx, s.db)
	if err != nil {
		return err
	}
	tree, orphans := buildTree(accounts)
	if len(orphans) > 0 {
		s.log.ErrorContext(ctx, "accounts without a root ignored", "accounts", len(orphans), "first", orphans[0])
	}
	whole := *d
	whole.tree = tree
	s.directory.Store(&whole)
	return nil
}

// readKeys reads the API keys and signing keys into d.
func (s *Service) readKeys(ctx context.Context, d *directory) (err error) {
	d.keysByHash, d.keysByID, err = readAPIKeys(ctx, s.db)
	if err != nil {
		return err
	}
	for _, key := range d.keysByID {
		if !key.ExpiresAt.IsZero() {
			d.keyExpiries = append(d.keyExpiries, key.ExpiresAt)
		}
	}
	slices.SortFunc(d.keyExpiries, time.Time.Compare)
	d.signingKeys, err = s.readSigningKeys(ctx, s.db)
	if err != nil {
		return err
	}
	d.jwks, err = d.signingKeys.keySet()
	return err
}

func readAPIKeys(ctx context.Context, db sqldb.Runner) (byHash, byID map[string]APIKey, err error) {
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

// revision has the counters of changes in table identity_revision.
type revision struct{ directory, revocations int64 }

func readRevision(ctx context.Context, db sqldb.Runner) (revision, error) {
	var r revision
	err := db.QueryRowContext(ctx, `SELECT directory, revocations FROM identity_revision`).
		Scan(&r.directory, &r.revocations)
	return r, sqldb.Wrap(err, "reading the revision")
}
