package identity

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"trunkline/internal/sqldb"
)

// Lookup finds an account in memory, else in the database, because it may have been
// created a moment ago. An id that the database does not have either is cached for a
// second, so that a flood of such ids costs little. An error means that the database
// could not be read.
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

// userLookups is the maximum number of user lookups per second.
const userLookups = 20

// lookupUser loads the user of a valid token that memory does not have: another node
// created the user a moment ago, or the user does not exist.
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
		s.metrics.reloadErrors.Inc() // if it lasts, Run logs it
	default:
		s.known.put(map[string]userState{id: state})
	}
}

// negativeCache has the ids that the database did not have, with the time of the query.
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
