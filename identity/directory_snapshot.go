package identity

import (
	"cmp"
	"context"
	"slices"
	"time"

	"trunkline/internal/sqldb"
)

// snapshot is the accounts and API keys in memory. It is immutable.
type snapshot struct {
	tree        *Tree
	keysByHash  map[string]APIKey // by hashSecret of the key
	keysByID    map[string]APIKey // by id
	keyExpiries []time.Time       // expiry times of API keys, ascending
}

// keyExpiredBetween reports whether an API key expires after the time after and not later
// than until.
func (s *snapshot) keyExpiredBetween(after, until time.Time) bool {
	// An equal expiry counts as earlier, so that the search finds the first one later than after.
	next, _ := slices.BinarySearchFunc(s.keyExpiries, after, func(expiry, after time.Time) int {
		return cmp.Or(expiry.Compare(after), -1)
	})
	return next < len(s.keyExpiries) && !s.keyExpiries[next].After(until)
}

// reload reads the snapshot from the database in two steps, and stores each: first the API
// keys, because their deletion must not wait for a large tree, with the tree of before, and
// then the tree. It uses no transaction: a concurrent change has a later revision, so the
// next poll reads it again.
func (d *Directory) reload(ctx context.Context) error {
	s, err := readAPIKeys(ctx, d.db)
	if err != nil {
		return err
	}

	s.tree = d.Tree()
	d.snapshot.Store(s)

	accounts, err := selectAccounts(ctx, d.db)
	if err != nil {
		return err
	}

	tree, orphans := buildTree(accounts)
	if len(orphans) > 0 {
		d.log.ErrorContext(ctx, "accounts without a root ignored", "accounts", len(orphans), "first", orphans[0])
	}

	whole := *s
	whole.tree = tree
	d.snapshot.Store(&whole)

	return nil
}

// readAPIKeys returns a snapshot without a tree.
func readAPIKeys(ctx context.Context, db sqldb.Runner) (*snapshot, error) {
	s := &snapshot{keysByHash: make(map[string]APIKey), keysByID: make(map[string]APIKey)}
	rows, err := db.QueryContext(ctx, `SELECT hash, `+apiKeyColumns+` FROM identity_api_keys`)
	_, err = sqldb.Collect(rows, err, "reading API keys", func(scan sqldb.ScanFunc) (struct{}, error) {
		var hash string
		key, err := scanAPIKey(scan, &hash)
		s.keysByHash[hash], s.keysByID[key.ID] = key, key

		if !key.ExpiresAt.IsZero() {
			s.keyExpiries = append(s.keyExpiries, key.ExpiresAt)
		}

		return struct{}{}, err
	})

	slices.SortFunc(s.keyExpiries, time.Time.Compare)
	return s, err
}
