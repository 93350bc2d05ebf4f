package audit

import (
	"time"

	"trunkline/internal/setting"
)

// Settings holds the settings of the audit log. A zero Retention is DefaultRetention.
type Settings struct {
	Retention time.Duration `yaml:"retention" doc:"how long entries of the audit log are kept"`
	Topic     bool          `yaml:"topic" doc:"also write the entries of the audit log to the topic audit"`
}

// DefaultRetention is the default retention of entries.
const DefaultRetention = 400 * 24 * time.Hour

// DefaultSettings returns the default settings.
func DefaultSettings() Settings { return Settings{Retention: DefaultRetention} }

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	c.Must(s.Retention >= 24*time.Hour, "retention", "must be at least 24h, is %s", s.Retention)
}
