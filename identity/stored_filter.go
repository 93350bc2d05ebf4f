package identity

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// maxFilterClaimBytes is the maximum size of a filter in a token's claims. A larger one
// is stored and the token has its id, because a token must fit into a request line and
// a balancer's header buffer, commonly 8 or 16 KB.
const maxFilterClaimBytes = 3 << 10

// maxStoredFilterBytes is the maximum size of a filter that is stored, as JSON.
const maxStoredFilterBytes = 64 << 10

// filterClaims returns the claims with a filter of the subject, or with its id after storing
// it.
func (t *Tokens) filterClaims(ctx context.Context, subject User, f Filter) (claims, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return claims{}, fault.Internal(err, "The filter could not be written")
	}

	if len(text) <= maxFilterClaimBytes {
		return claims{Filter: f}, nil
	}
	if len(text) > maxStoredFilterBytes {
		return claims{}, fault.Invalid(fmt.Sprintf("The filter is over %d KiB", maxStoredFilterBytes>>10))
	}

	return t.storeFilter(ctx, subject, string(text))
}

// storeFilter stores a filter until the last token that can name it has expired. Returns
// fault.KindLimited if the subject or its account has too many already.
func (t *Tokens) storeFilter(ctx context.Context, subject User, text string) (claims, error) {
	sum := sha256.Sum256([]byte(subject.ID + "\x00" + text))
	id, now := hex.EncodeToString(sum[:]), t.cfg.Now()
	err := t.db.Tx(ctx, func(tx *sql.Tx) error {
		if err := t.checkFilterQuota(ctx, tx, subject, id, int64(len(text)), now); err != nil {
			return err
		}

		// The token is signed later than now: the minute is for the time until then.
		_, err := tx.ExecContext(ctx,
			`INSERT INTO identity_filters (id, filter, expires_at, owner, account_id) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at WHERE identity_filters.expires_at < excluded.expires_at`,
			id, text, now.Add(t.cfg.EventsTTL+time.Minute).UnixMilli(), subject.ID, subject.AccountID)

		return sqldb.Wrap(err, "storing a filter")
	})

	return claims{FilterID: id}, err
}

// checkFilterQuota checks that the subject may store the filter with the id beside those
// that it and its account have.
func (t *Tokens) checkFilterQuota(ctx context.Context, tx *sql.Tx, subject User, id string, bytes int64,
	now time.Time) error {
	for _, quota := range []struct {
		setting       string
		sum           string // in SQL
		column, whose string // the column, and its value, of the filters that count together
		added, limit  int64
	}{
		{"auth.stored_filters", "COUNT(*)", "owner", subject.ID, 1, int64(t.cfg.StoredFilters)},
		{"account.filter_bytes", "SUM(LENGTH(filter))", "account_id", subject.AccountID, bytes,
			int64(t.cfg.Accounts.FilterBytes)},
	} {
		var stored, firstExpiry sql.NullInt64
		row := tx.QueryRowContext(ctx, `SELECT `+quota.sum+`, MIN(expires_at) FROM identity_filters
			WHERE `+quota.column+` = $1 AND id <> $2 AND expires_at > $3`, quota.whose, id, now.UnixMilli())
		if err := row.Scan(&stored, &firstExpiry); err != nil {
			return sqldb.Wrap(err, "counting stored filters")
		}

		if stored.Int64+quota.added > quota.limit {
			wait := wholeSeconds(time.UnixMilli(firstExpiry.Int64).Sub(now))
			return fault.Limited(max(wait, time.Second),
				fmt.Sprintf("Too many filters over %d KiB (%s): use a token until it expires", maxFilterClaimBytes>>10,
					quota.setting))
		}
	}

	return nil
}

// loadFilter returns the filter of a token, from its claims or the database.
func (t *Tokens) loadFilter(ctx context.Context, c *claims) (Filter, error) {
	if c.FilterID == "" {
		return c.Filter, nil
	}
	if f, ok := t.filters.find(c.FilterID); ok {
		return f, nil
	}

	var text string
	row := t.db.QueryRowContext(ctx, `SELECT filter FROM identity_filters WHERE id = $1`, c.FilterID)
	if err := sqldb.FindInto(row, fault.Unauthenticated("The token's filter has expired"), "reading a token's filter",
		&text); err != nil {
		return Filter{}, err
	}

	var f Filter
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return Filter{}, fault.Internal(err, "The token's filter could not be read")
	}

	t.filters.put(c.FilterID, f)
	return f, nil
}

// maxCachedFilters bounds the stored filters in memory. Each has at most
// maxStoredFilterBytes. The filter of an id never changes.
const maxCachedFilters = 200
