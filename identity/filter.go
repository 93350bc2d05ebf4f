package identity

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// Filter restricts the events of a channel token or webhook. An empty list does not
// restrict; an event must match every other list. Ids are those of the source.
type Filter struct {
	AccountIDs []string `json:"account_ids,omitempty"`
	EventTypes []string `json:"event_types,omitempty"`
	QueueIDs   []string `json:"queue_ids,omitempty"`
	AgentIDs   []string `json:"agent_ids,omitempty"`
	CallIDs    []string `json:"call_ids,omitempty"`
	Names      []string `json:"names,omitempty"` // event names, or a class such as "call.*"
}

const (
	maxFilterAccounts = 200
	maxFilterIDs      = 1000 // per list

	// MaxFilterID is the maximum length of an id in a filter, in bytes.
	MaxFilterID = 256
)

// unique returns the filter without repeated entries.
func (f Filter) unique() Filter {
	return Filter{unique(f.AccountIDs), unique(f.EventTypes), unique(f.QueueIDs), unique(f.AgentIDs), unique(f.CallIDs),
		unique(f.Names)}
}

// CheckFilter checks the filter of an account's channel login or webhook and returns it
// without repeated entries. Returns fault.KindInvalid that names every invalid field.
func (s *Service) CheckFilter(ctx context.Context, accountID string, f Filter) (Filter, error) {
	distinct := f.unique()
	if err := distinct.checkLengths(); err != nil {
		return Filter{}, err
	}
	if !s.containsAll(accountID, distinct.AccountIDs) {
		s.pollEarly(ctx) // another node may have just created one of the accounts
	}
	return distinct, s.checkFilterFields(accountID, f)
}

// checkFilterFields returns fault.KindInvalid that names every invalid field.
func (s *Service) checkFilterFields(accountID string, f Filter) error {
	var bad problems
	tree := s.Tree()
	for i, id := range f.AccountIDs {
		if !tree.Contains(accountID, id) {
			bad.add(fmt.Sprintf("account_ids[%d]", i), "unknown_account", "unknown account "+quote(id))
		}
	}
	for i, name := range f.EventTypes {
		_, _, known := event.SetOf([]string{name})
		if !known {
			bad.add(fmt.Sprintf("event_types[%d]", i), "unknown_type", "unknown event type "+quote(name))
		}
	}
	for _, list := range []struct {
		field string
		ids   []string
	}{{"queue_ids", f.QueueIDs}, {"agent_ids", f.AgentIDs}, {"call_ids", f.CallIDs}} {
		bad.checkIDs(list.field, list.ids)
	}
	for i, name := range f.Names {
		_, known := event.NamesMatching(name)
		if !known {
			bad.add(fmt.Sprintf("names[%d]", i), "unknown_name", "unknown name "+quote(name))
		}
	}
	return bad.asError("Invalid filter")
}

// checkIDs checks a list of ids of a source.
func (p *problems) checkIDs(field string, ids []string) {
	for i, id := range ids {
		if id == "" || len(id) > MaxFilterID || !utf8.ValidString(id) {
			p.add(fmt.Sprintf("%s[%d]", field, i), codeInvalid, fmt.Sprintf("an id has 1 to %d bytes", MaxFilterID))
		}
	}
}

// checkLengths returns fault.KindInvalid if a list has too many different entries.
func (f Filter) checkLengths() error {
	if len(f.AccountIDs) > maxFilterAccounts {
		return fault.InvalidField("account_ids", codeTooMany,
			fmt.Sprintf("at most %d accounts can be named", maxFilterAccounts))
	}
	for _, list := range []struct {
		field string
		ids   []string
	}{{"queue_ids", f.QueueIDs}, {"agent_ids", f.AgentIDs}, {"call_ids", f.CallIDs}, {"names", f.Names}} {
		if len(list.ids) > maxFilterIDs {
			return fault.InvalidField(list.field, codeTooMany,
				fmt.Sprintf("at most %d entries can be named", maxFilterIDs))
		}
	}
	return nil
}

// maxFilterClaimBytes is the maximum size of a filter in a token's claims. A larger one
// is stored and the token has its id, because a token must fit into a request line and
// a balancer's header buffer, commonly 8 or 16 KB.
const maxFilterClaimBytes = 3 << 10

// maxStoredFilterBytes is the maximum size of a filter that is stored, as JSON.
const maxStoredFilterBytes = 64 << 10

// filterClaim returns the claims with a filter of the subject, or with its id after storing
// it.
func (s *Service) filterClaim(ctx context.Context, subject User, f Filter) (claims, error) {
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
	return s.storeFilter(ctx, subject, string(text))
}

// storeFilter stores a filter until the last token that can name it has expired. Returns
// fault.KindLimited if the subject or its account has too many already.
func (s *Service) storeFilter(ctx context.Context, subject User, text string) (claims, error) {
	sum := sha256.Sum256([]byte(subject.ID + "\x00" + text))
	id, now := hex.EncodeToString(sum[:]), s.cfg.Now()
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		if err := s.checkFilterQuota(ctx, tx, subject, id, int64(len(text)), now); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx,
			`INSERT INTO identity_filters (id, filter, expires_at, owner, account_id) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at WHERE identity_filters.expires_at < excluded.expires_at`,
			id, text, now.Add(s.cfg.EventsTTL+time.Minute).UnixMilli(), subject.ID, subject.AccountID)
		return sqldb.Wrap(err, "storing a filter")
	})
	return claims{FilterID: id}, err
}

// checkFilterQuota checks that the subject may store the filter with the id beside those
// that it and its account have.
func (s *Service) checkFilterQuota(ctx context.Context, tx *sql.Tx, subject User, id string, bytes int64,
	now time.Time) error {
	for _, quota := range []struct {
		setting      string
		sum          string // in SQL
		column, of   string // whose
		added, limit int64
	}{
		{"auth.stored_filters", "COUNT(*)", "owner", subject.ID, 1, int64(s.cfg.StoredFilters)},
		{"account.filter_bytes", "SUM(LENGTH(filter))", "account_id", subject.AccountID, bytes,
			int64(s.cfg.Accounts.FilterBytes)},
	} {
		var has, firstExpiry sql.NullInt64
		row := tx.QueryRowContext(ctx, `SELECT `+quota.sum+`, MIN(expires_at) FROM identity_filters
			WHERE `+quota.column+` = $1 AND id <> $2 AND expires_at > $3`, quota.of, id, now.UnixMilli())
		if err := row.Scan(&has, &firstExpiry); err != nil {
			return sqldb.Wrap(err, "counting stored filters")
		}
		if has.Int64+quota.added > quota.limit {
			wait := wholeSeconds(time.UnixMilli(firstExpiry.Int64).Sub(now))
			return fault.Limited(max(wait, time.Second),
				fmt.Sprintf("Too many filters over %d KiB (%s): use a token until it expires", maxFilterClaimBytes>>10,
					quota.setting))
		}
	}
	return nil
}

// loadFilter returns the filter of a token, from its claims or the database.
func (s *Service) loadFilter(ctx context.Context, c *claims) (Filter, error) {
	if c.FilterID == "" {
		return c.Filter, nil
	}
	if f, ok := s.filters.find(c.FilterID); ok {
		return f, nil
	}
	var text string
	row := s.db.QueryRowContext(ctx, `SELECT filter FROM identity_filters WHERE id = $1`, c.FilterID)
	if err := sqldb.FindInto(row, fault.Unauthenticated("The token's filter has expired"), "reading a token's filter",
		&text); err != nil {
		return Filter{}, err
	}
	var f Filter
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return Filter{}, fault.Internal(err, "The token's filter could not be read")
	}
	s.filters.put(c.FilterID, f)
	return f, nil
}

// maxCachedFilters bounds the stored filters in memory. Each has at most
// maxStoredFilterBytes. The filter of an id never changes.
const maxCachedFilters = 200

// containsAll reports whether all accounts in ids are root or below it.
func (s *Service) containsAll(root string, ids []string) bool {
	tree := s.Tree()
	return !slices.ContainsFunc(ids, func(id string) bool { return !tree.Contains(root, id) })
}

// unique returns the list without repeated entries.
func unique(list []string) []string {
	var kept []string
	seen := make(map[string]struct{}, len(list))
	for _, entry := range list {
		_, repeat := seen[entry]
		if !repeat {
			seen[entry] = struct{}{}
			kept = append(kept, entry)
		}
	}
	return kept
}
