package identity

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"trunkline/internal/sqldb"
)

// FindAccount finds an account in memory, or else in the database, because it may have
// just been created. An id that is not in the database either is cached for negativeTTL,
// and only accountLookupsPerSecond of the requests for cached ids read the database again,
// so that many requests with unknown ids cost little. An error means that the database
// could not be read.
func (s *Service) FindAccount(ctx context.Context, id string) (Account, bool, error) {
	if account, ok := s.Tree().Account(id); ok {
		return account, true, nil
	}
	if s.unknownAccounts.has(id, s.now()) && !s.accountLookupLimiter.Allow() {
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

// accountLookupsPerSecond is the maximum number of lookups per second of accounts that are
// cached as unknown: such an account may have been created since.
const accountLookupsPerSecond = 20

// userLookupsPerSecond is the maximum number of user lookups per second.
const userLookupsPerSecond = 20

// lookupUser loads the state of a user that is not in memory: another node has just
// created the user, or the user does not exist.
func (s *Service) lookupUser(ctx context.Context, id string) {
	now := s.now()
	if s.unknownUsers.has(id, now) || !s.userLookupLimiter.Allow() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	state := userState{}
	row := s.db.QueryRowContext(ctx, `SELECT `+userStateColumns+` FROM identity_users WHERE id = $1`, id)
	err := sqldb.FindInto(row, sql.ErrNoRows, "looking up a user", state.columns()...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		s.unknownUsers.put(id, now)
	case err != nil:
		s.metrics.reloadErrors.Inc() // if the error persists, Run logs it
	default:
		s.userStates.put(map[string]userState{id: state})
	}
}

// negativeCache has the ids that a query did not find, with the time of the query.
type negativeCache struct{ *cache[string, time.Time] }

const (
	negativeTTL        = time.Second
	maxNegativeEntries = 4096
)

func newNegativeCache() negativeCache {
	return negativeCache{newCache[string, time.Time](maxNegativeEntries)}
}

func (c negativeCache) has(id string, now time.Time) bool {
	queriedAt, ok := c.find(id)
	return ok && now.Sub(queriedAt) < negativeTTL
}
