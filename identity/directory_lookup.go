package identity

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// FindAccount finds an account in memory, or else in the database, because it may have
// just been created. An id that is not in the database either is cached for negativeTTL,
// and only accountLookupsPerSecond of the requests for cached ids read the database again,
// so that many requests with unknown ids cost little. An error means that the database
// could not be read.
func (d *Directory) FindAccount(ctx context.Context, id string) (Account, bool, error) {
	if account, ok := d.Tree().Account(id); ok {
		return account, true, nil
	}
	if d.unknownAccounts.has(id, d.cfg.storedNow()) && !d.accountLookupLimiter.Allow() {
		return Account{}, false, nil
	}

	var found int
	err := d.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM identity_accounts WHERE id = $1`, id).Scan(&found)
	if err != nil {
		return Account{}, false, sqldb.Wrap(err, "looking up an account")
	}

	if found == 0 {
		d.unknownAccounts.put(id, d.cfg.storedNow())
		return Account{}, false, nil
	}
	if err := d.changes.poll(ctx); err != nil {
		return Account{}, false, err
	}

	account, ok := d.Tree().Account(id)
	return account, ok, nil
}

// accountLookupsPerSecond is the maximum number of lookups per second of accounts that are
// cached as unknown: such an account may have been created since.
const accountLookupsPerSecond = 20

// userLookupsPerSecond is the maximum number of user lookups per second.
const userLookupsPerSecond = 20

// lookupUser loads the state of a user that is not in memory: another node has just
// created the user, or the user does not exist.
func (d *Directory) lookupUser(ctx context.Context, id string) {
	now := d.cfg.storedNow()
	if d.unknownUsers.has(id, now) || !d.userLookupLimiter.Allow() {
		return
	}

	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()

	state := userState{}
	row := d.db.QueryRowContext(ctx, `SELECT `+userStateColumns+` FROM identity_users WHERE id = $1`, id)
	err := sqldb.FindInto(row, sql.ErrNoRows, "looking up a user", state.columns()...)

	switch {
	case errors.Is(err, sql.ErrNoRows):
		d.unknownUsers.put(id, now)
	case err != nil:
		d.metrics.reloadErrors.Inc() // if the error persists, Run logs it
	default:
		d.userStates.add(id, state)
	}
}

// FindPhone finds the user of a domain's extension. Returns fault.KindNotFound if there
// is none.
func (d *Directory) FindPhone(ctx context.Context, domain, extension string) (Phone, error) {
	unknown := fault.NotFound("There is no phone %s", quote(extension))
	account, ok := d.Tree().ByDomain(domain)
	if !ok || extension == "" {
		return Phone{}, unknown
	}

	p := Phone{AccountID: account.ID, Domain: account.Domain, Extension: extension}
	row := d.db.QueryRowContext(ctx,
		`SELECT id, username FROM identity_users WHERE account_id = $1 AND presence_id = $2`, account.ID, extension)
	if err := sqldb.FindInto(row, unknown, "reading a phone", &p.UserID, &p.username); err != nil {
		return Phone{}, err
	}

	return p, nil
}

// negativeCache has the ids that a query did not find, with the time of the query.
type negativeCache struct {
	*boundedCache[string, time.Time]
}

const (
	negativeTTL        = time.Second
	maxNegativeEntries = 4096
)

func newNegativeCache() negativeCache {
	return negativeCache{newBoundedCache[string, time.Time](maxNegativeEntries)}
}

func (c negativeCache) has(id string, now time.Time) bool {
	queriedAt, ok := c.find(id)
	return ok && now.Sub(queriedAt) < negativeTTL
}
