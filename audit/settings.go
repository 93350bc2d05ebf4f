package audit

import (
	"time"

	"trunkline/internal/setting"
)

// Settings are the process's settings of the audit log, of the group audit.
type Settings struct {
	Retention time.Duration `yaml:"retention" doc:"how long entries of the audit log are kept"`
	Topic     bool          `yaml:"topic" doc:"also write the entries of the audit log to the topic audit"`

	UserEntriesPerMinute int `yaml:"user_entries_per_minute" doc:"requests of a user in a minute, on each node, that are written to the audit log"`
	KeyEntriesPerMinute  int `yaml:"key_entries_per_minute" doc:"requests of an API key in a minute, on each node, that are written to the audit log"`
}

// DefaultRetention is the default retention of entries.
const DefaultRetention = 400 * 24 * time.Hour

// DefaultSettings returns the default settings.
func DefaultSettings() Settings {
	return Settings{Retention: DefaultRetention, UserEntriesPerMinute: 600, KeyEntriesPerMinute: 6000}
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	c.Must(s.Retention >= 24*time.Hour, "retention", "must be at least 24h, is %s", s.Retention)
	c.Must(s.UserEntriesPerMinute >= 1, "user_entries_per_minute", "must be at least 1, is %d", s.UserEntriesPerMinute)
	c.Must(s.KeyEntriesPerMinute >= 1, "key_entries_per_minute", "must be at least 1, is %d", s.KeyEntriesPerMinute)
}
