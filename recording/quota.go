package recording

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

// usageAge is how long a sum of an account's stored bytes is used: it takes a scan of the
// account's rows. Meanwhile the uploads of this node are added, those of others are not.
const usageAge = time.Minute

// maxCachedUsages bounds the accounts whose sums are kept; above it all are dropped.
const maxCachedUsages = 10_000

// usageCache has the stored bytes of accounts.
type usageCache struct {
	rows rows
	max  int64 // bytes, Settings.MaxAccountBytes; 0: no limit

	mu       sync.Mutex
	accounts map[string]accountUsage
}

type accountUsage struct {
	bytes  int64
	readAt time.Time
}

// find returns the stored bytes of an account, if they are known.
func (u *usageCache) find(accountID string, now time.Time) (bytes int64, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	known, ok := u.accounts[accountID]
	return known.bytes, ok && now.Sub(known.readAt) < usageAge
}

func (u *usageCache) keep(accountID string, bytes int64, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.accounts == nil || len(u.accounts) >= maxCachedUsages {
		u.accounts = make(map[string]accountUsage)
	}
	u.accounts[accountID] = accountUsage{bytes, now}
}

// add adds an upload to an account that is known.
func (u *usageCache) add(accountID string, bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if known, ok := u.accounts[accountID]; ok {
		known.bytes += bytes
		u.accounts[accountID] = known
	}
}

// requireQuota returns fault.KindConflict if the account has MaxAccountBytes already. The
// upload that passes the limit is still stored.
func (u *usageCache) requireQuota(ctx context.Context, accountID string) error {
	if u.max == 0 {
		return nil
	}

	now := time.Now()
	used, known := u.find(accountID, now)
	if !known {
		var err error
		used, err = u.rows.storedBytes(ctx, accountID)
		if err != nil {
			return err
		}
		u.keep(accountID, used, now)
	}

	if used >= u.max {
		return fault.Conflict(
			"the account has %d bytes of recordings, the most that recordings.max_account_bytes allows", used)
	}

	return nil
}

// storedBytes returns the sum of the stored sizes of an account's recordings.
func (t rows) storedBytes(ctx context.Context, accountID string) (int64, error) {
	var sum sql.NullInt64
	err := t.db.QueryRowContext(ctx, `SELECT SUM(stored_size) FROM recordings WHERE account_id = $1`,
		accountID).Scan(&sum)
	return sum.Int64, sqldb.Wrap(err, "adding up the sizes of recordings")
}
