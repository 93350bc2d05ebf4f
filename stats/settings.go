package stats

import (
	"time"

	"trunkline/internal/setting"
)

// maxLabelSets bounds stats.max_label_sets.
const maxLabelSets = 10_000

// Settings holds the settings of the figures of queues and agents.
type Settings struct {
	Interval     time.Duration `yaml:"interval" doc:"length of the intervals of the figures, aligned to the hour: 1m, 5m or 15m; another one begins new rows"`
	LateEvents   time.Duration `yaml:"late_events" doc:"how long after its end an interval takes late events; until then its rows are on cc.stats"`
	MaxLabelSets int           `yaml:"max_label_sets" doc:"how many queues have label sets of their own in the metrics trunkline_queue_*, on each node; the others share one; 0: these metrics are off"`
	MaxRows      int           `yaml:"max_rows" doc:"queues, and agents, of an account that get figures in one interval and partition; those above it get none; ten times as many calls, and agents, are remembered between intervals; the same on all nodes"`
	Retention    time.Duration `yaml:"retention" doc:"how long the rows of the reports are kept in the database after their interval; 0: for ever"`
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings {
	return Settings{Interval: 15 * time.Minute, LateEvents: 48 * time.Hour, MaxRows: 10_000,
		Retention: 400 * 24 * time.Hour}
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	c.Must(s.Interval == time.Minute || s.Interval == 5*time.Minute || s.Interval == 15*time.Minute, "interval",
		"must be 1m, 5m or 15m, is %s", s.Interval)
	c.Must(s.LateEvents >= callExpiry && s.LateEvents <= agentExpiryAge, "late_events", "must be %s to %s, is %s",
		callExpiry, agentExpiryAge, s.LateEvents)
	c.Must(s.MaxLabelSets >= 0 && s.MaxLabelSets <= maxLabelSets, "max_label_sets", "must be 0 to %d, is %d",
		maxLabelSets, s.MaxLabelSets)
	c.Must(s.MaxRows >= 1, "max_rows", "must be at least 1, is %d", s.MaxRows)
	c.Must(s.Retention == 0 || s.Retention >= s.LateEvents, "retention",
		"must be 0 or at least stats.late_events, is %s", s.Retention)
}
