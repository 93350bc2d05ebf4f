package kazoo

import (
	"fmt"
	"net/url"
	"strings"

	"trunkline/internal/setting"
)

// Settings holds the settings of the Kazoo driver.
type Settings struct {
	URL      string         `yaml:"url" doc:"address of Kazoo's HTTP API, as https://kazoo.example.com:8443"`
	APIKey   setting.Secret `yaml:"api_key" doc:"API key of the Kazoo account that is the parent of the others"`
	Accounts []string       `yaml:"accounts" doc:"Kazoo's account ids, each written ACCOUNT=KAZOO_ACCOUNT; an account that is not listed has the same id"`
}

// Validate implements setting.Group. It is called if the driver is kazoo.
func (s Settings) Validate(c *setting.Check) {
	c.Must(s.URL != "", "url", "origination.driver kazoo needs it")
	parsed, err := url.Parse(s.URL) // its error could contain a password
	c.Must(s.URL == "" ||
		err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https") && parsed.Host != "" && parsed.User == nil,
		"url", "want an address such as https://kazoo.example.com:8443, without a user")
	c.Must(s.APIKey != "", "api_key", "origination.driver kazoo needs it")
	s.ValidateAccounts(c)
}

// ValidateAccounts checks Accounts alone.
func (s Settings) ValidateAccounts(c *setting.Check) {
	_, err := s.accountMap()
	c.NoError(err, "accounts")
}

// accountMap returns Kazoo's account ids by ours.
func (s Settings) accountMap() (map[string]string, error) {
	ids := make(map[string]string, len(s.Accounts))
	for _, text := range s.Accounts {
		ours, theirs, ok := strings.Cut(text, "=")
		if !ok || ours == "" || theirs == "" {
			return nil, fmt.Errorf("%q is not written ACCOUNT=KAZOO_ACCOUNT", text)
		}
		ids[ours] = theirs
	}
	return ids, nil
}
