package sqldb

import (
	"net/url"

	"trunkline/internal/setting"
)

// Settings holds the settings of the database.
type Settings struct {
	URL setting.URL `yaml:"url" doc:"postgres://user:password@host/name; empty: SQLite in data_dir"`
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	if s.URL == "" {
		return
	}
	parsed, err := url.Parse(string(s.URL)) // the error would contain the password
	c.Must(err == nil && (parsed.Scheme == "postgres" || parsed.Scheme == "postgresql") && parsed.Host != "",
		"url", "want postgres://user:password@host:5432/name")
}
