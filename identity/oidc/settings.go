package oidc

import "trunkline/internal/setting"

// CallbackPath is the path of Settings.RedirectURL.
const CallbackPath = "/auth/oidc/callback"

// Settings holds the settings of logins at an OpenID Connect provider.
type Settings struct {
	Issuer        string         `yaml:"issuer" doc:"the provider's issuer URL, as its tokens name it; empty: no OpenID Connect"`
	ClientID      string         `yaml:"client_id" doc:"id of Trunkline as a client of the provider"`
	ClientSecret  setting.Secret `yaml:"client_secret" doc:"secret of client_id; empty: a public client"`
	Audience      string         `yaml:"audience" doc:"audience of the provider's access tokens for Trunkline; empty: only tokens for client_id are accepted"`
	AccountClaim  string         `yaml:"account_claim" doc:"claim with the id, name or domain of the user's account"`
	RoleClaim     string         `yaml:"role_claim" doc:"claim that has or contains a role, such as admin or supervisor; empty: new users have the role user, and administrators change it"`
	PresenceClaim string         `yaml:"presence_claim" doc:"claim with the user's extension; empty: administrators set it"`
	RedirectURL   string         `yaml:"redirect_url" doc:"https://HOST/auth/oidc/callback as browsers reach it and the provider knows it; empty: the board has no login at the provider"`
	Scope         string         `yaml:"scope" doc:"what the board's login asks the provider for, space-separated"`
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings {
	return Settings{AccountClaim: "account", Scope: "openid profile email"}
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	if s.Issuer == "" {
		for _, other := range []struct{ name, value string }{
			{"client_id", s.ClientID}, {"client_secret", string(s.ClientSecret)}, {"audience", s.Audience},
			{"redirect_url", s.RedirectURL},
		} {
			c.Must(other.value == "", "issuer", "%s needs it", c.Key(other.name))
		}

		return
	}

	issuer, ok := setting.SecureURL(s.Issuer)
	c.Must(ok && issuer.RawQuery == "", "issuer", "want an https URL without a query, got %s", setting.Quote(s.Issuer))
	c.Must(s.ClientID != "", "client_id", "%s needs it", c.Key("issuer"))
	c.Must(s.AccountClaim != "", "account_claim", "%s needs it", c.Key("issuer"))

	if s.RedirectURL != "" {
		redirect, ok := setting.SecureURL(s.RedirectURL)
		c.Must(ok && redirect.Path == CallbackPath && redirect.RawQuery == "", "redirect_url",
			"want https://HOST%s, got %q", CallbackPath, s.RedirectURL)
	}
}
