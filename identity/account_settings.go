package identity

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
)

// AccountSettings holds the settings of accounts.
type AccountSettings struct {
	PurgeAfter time.Duration `yaml:"purge_after" doc:"how long the recordings, keys, configuration, call records and figures of a deleted account are kept, and its name and domain stay taken"`
	Domains    []string      `yaml:"domains" doc:"domains that administrators may give to accounts beside those below their own: a domain, or *.domain for all below it"`

	APIKeys     int           `yaml:"api_keys" doc:"API keys of one account"`
	Users       int           `yaml:"users" doc:"users of one account"`
	FilterBytes setting.Bytes `yaml:"filter_bytes" doc:"filters over 3 KiB that the channel tokens of an account may have at once"`
}

// DefaultAccountSettings returns the default settings.
func DefaultAccountSettings() AccountSettings {
	return AccountSettings{PurgeAfter: 30 * 24 * time.Hour, APIKeys: 1000, Users: 50_000, FilterBytes: 32 << 20}
}

// checkQuota checks that an account may have one more row in a table. what are the rows.
func checkQuota(ctx context.Context, tx *sql.Tx, table, accountID, what string, limit int, settingName string) error {
	var n int
	if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+table+` WHERE account_id = $1`,
		accountID).Scan(&n); err != nil {
		return sqldb.Wrap(err, "counting an account's "+what)
	}
	if n >= limit {
		return fault.Conflict("The account has %d %s, the most that %s allows", n, what, settingName)
	}
	return nil
}

// Validate implements setting.Group.
func (s AccountSettings) Validate(c *setting.Check) {
	c.Must(s.PurgeAfter >= 0, "purge_after", "must not be negative, is %s", s.PurgeAfter)
	c.Must(s.APIKeys >= 1, "api_keys", "must be at least 1, is %d", s.APIKeys)
	c.Must(s.Users >= 1, "users", "must be at least 1, is %d", s.Users)
	c.Must(s.FilterBytes >= maxStoredFilterBytes, "filter_bytes", "must be at least %d KiB", maxStoredFilterBytes>>10)
	for _, domain := range s.Domains {
		host := strings.TrimPrefix(domain, "*.")
		valid := host != "" && host == strings.ToLower(host) && !strings.ContainsAny(host, "* /:@") && !isAddress(host)
		c.Must(valid, "domains", "each is a domain in lower case, or *. and a domain, not %q", domain)
	}
}
