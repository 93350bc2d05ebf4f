package identity

import (
	"time"

	"trunkline/identity/oidc"
	"trunkline/internal/setting"
)

// Settings holds the settings of logins and tokens.
type Settings struct {
	AccessTTL  time.Duration `yaml:"access_ttl" doc:"lifetime of a portal access token"`
	RefreshTTL time.Duration `yaml:"refresh_ttl" doc:"lifetime of a portal refresh token"`
	EventsTTL  time.Duration `yaml:"events_ttl" doc:"lifetime of an events channel token"`

	SIPPortalPassword string `yaml:"sip_portal_password" doc:"whether phones can register with their user's portal password instead of a device password: refuse, warn (accept and log) or allow"`

	UserTokensPerMinute int `yaml:"user_tokens_per_minute" doc:"tokens that a user gets in a minute by logging in, by channel logins, and by refreshes; each is counted by itself"`
	KeyTokensPerMinute  int `yaml:"key_tokens_per_minute" doc:"channel tokens that an API key gets in a minute"`
	SessionsPerUser     int `yaml:"sessions_per_user" doc:"portal sessions of a user at once; a login above it ends the one that was not refreshed for longest"`
	StoredFilters       int `yaml:"stored_filters" doc:"filters over 3 KiB that the channel tokens of a user or API key may have at once"`

	AccountsPerTenant int `yaml:"accounts_per_tenant" doc:"accounts that an account may have below it, on all levels together; a root account may have a hundred times as many"`

	OIDC oidc.Settings `yaml:"oidc"`
}

// Values of SIPPortalPassword.
const (
	RefusePortalPassword = "refuse"
	WarnPortalPassword   = "warn"
	AllowPortalPassword  = "allow"
)

// DefaultSettings returns the default settings.
func DefaultSettings() Settings {
	const day = 24 * time.Hour
	return Settings{
		AccessTTL: time.Hour, RefreshTTL: 30 * day, EventsTTL: day, SIPPortalPassword: RefusePortalPassword,
		UserTokensPerMinute: 600, KeyTokensPerMinute: 600, SessionsPerUser: 1000, StoredFilters: 100,
		AccountsPerTenant: 1000, OIDC: oidc.DefaultSettings(),
	}
}

// maxTokenTTL bounds the lifetime of tokens that are verified without the database.
// Retired signing keys and revocations of deleted users are kept this long, because the
// node that issued a token may have other settings.
const maxTokenTTL = 30 * 24 * time.Hour

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	tokenTTL := func(name string, d time.Duration) {
		c.Must(d >= time.Second && d <= maxTokenTTL, name, "must be 1s to %s, is %s", maxTokenTTL, d)
	}
	tokenTTL("access_ttl", s.AccessTTL)
	tokenTTL("events_ttl", s.EventsTTL)
	c.OneOf("sip_portal_password", s.SIPPortalPassword, RefusePortalPassword, WarnPortalPassword, AllowPortalPassword)
	c.Must(s.RefreshTTL >= s.AccessTTL, "refresh_ttl", "must not be shorter than %s (%s), is %s", c.Key("access_ttl"),
		s.AccessTTL, s.RefreshTTL)

	for _, limit := range []struct {
		name  string
		value int
	}{
		{"user_tokens_per_minute", s.UserTokensPerMinute}, {"key_tokens_per_minute", s.KeyTokensPerMinute},
		{"sessions_per_user", s.SessionsPerUser}, {"stored_filters", s.StoredFilters},
	} {
		c.Must(limit.value >= 1 && limit.value <= 1_000_000, limit.name, "must be 1 to 1000000, is %d", limit.value)
	}

	c.Must(s.AccountsPerTenant >= 1 && s.AccountsPerTenant <= 100_000, "accounts_per_tenant",
		"must be 1 to 100000, is %d", s.AccountsPerTenant)
	s.OIDC.Validate(c.Group("oidc"))
}

// ttl returns the lifetime of a token of the audience.
func (s Settings) ttl(audience Audience) time.Duration {
	if audience == AudienceEvents {
		return s.EventsTTL
	}
	return s.AccessTTL
}
