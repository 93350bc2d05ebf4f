package identity

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"trunkline/internal/sqldb"
)

// Lookup finds an account that may have been made a moment ago: it asks the
// database when memory does not know the id. What the database does not know
// either is remembered for a second, so that a flood of such ids costs little.
// The error says that the database could not be asked.
func (s *Service) Lookup(ctx context.Context, id string) (Account, bool, error) {
	if account, ok := s.Tree().Account(id); ok {
		return account, true, nil
	}
	if s.unknownAccounts.contains(id, s.now()) {
		return Account{}, false, nil
	}
	var found int
	err := s.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM identity_accounts WHERE id = $1`, id).Scan(&found)
	if err != nil {
		return Account{}, false, sqldb.Wrap(err, "looking up an account")
	}
	if found == 0 {
		s.unknownAccounts.put(id, s.now())
		return Account{}, false, nil
	}
	if err := s.poll(ctx); err != nil {
		return Account{}, false, err
	}
	account, ok := s.Tree().Account(id)
	return account, ok, nil
}

// userLookups bounds how many users are looked up in a second.
const userLookups = 20

// lookupUser loads a user whom a valid token names and memory does not know:
// made by another node a moment ago, or of another making than ours.
func (s *Service) lookupUser(ctx context.Context, id string) {
	now := s.now()
	if s.unknownUsers.contains(id, now) || !s.lookups.Allow() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	state := userState{}
	row := s.db.QueryRowContext(ctx, `SELECT account_id, role, generation, kept_family FROM identity_users WHERE id = $1`, id)
	err := sqldb.FindInto(row, sql.ErrNoRows, "looking up a user", &state.accountID, &state.role, &state.generation, &state.keptFamily)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		s.unknownUsers.put(id, now)
	case err != nil:
		s.metrics.reloadErrors.Inc() // Run logs it, should it last
	default:
		s.known.put(map[string]userState{id: state})
	}
}

// negativeCache are ids that the database did not know lately, and when.
type negativeCache struct{ *cache[string, time.Time] }

const (
	negativeLife     = time.Second
	negativeCacheMax = 4096
)

func newNegativeCache() negativeCache {
	return negativeCache{newCache[string, time.Time](negativeCacheMax)}
}

func (c negativeCache) contains(id string, now time.Time) bool {
	at, ok := c.find(id)
	return ok && now.Sub(at) < negativeLife
}
