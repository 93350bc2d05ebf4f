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
	return Settings{AccessTTL: time.Hour, RefreshTTL: 30 * day, EventsTTL: day, SIPPortalPassword: RefusePortalPassword, AccountsPerTenant: 1000, OIDC: oidc.DefaultSettings()}
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
	c.Must(s.RefreshTTL >= s.AccessTTL, "refresh_ttl", "must not be shorter than %s (%s), is %s", c.Key("access_ttl"), s.AccessTTL, s.RefreshTTL)
	c.Must(s.AccountsPerTenant >= 1 && s.AccountsPerTenant <= 100_000, "accounts_per_tenant", "must be 1 to 100000, is %d", s.AccountsPerTenant)
	s.OIDC.Validate(c.Group("oidc"))
}

// ttl returns the lifetime of a token of the audience.
func (s Settings) ttl(audience Audience) time.Duration {
	if audience == AudienceEvents {
		return s.EventsTTL
	}
	return s.AccessTTL
}
