package cdrindex

import "trunkline/internal/setting"

// Settings holds the settings of the index of call records.
type Settings struct {
	RetentionMonths int `yaml:"retention_months" doc:"whole months of call records kept in the database beside the current one; 0: all"`
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	const maxMonths = 1200 // a year that PostgreSQL and SQLite can compute with
	c.NotNegative("retention_months", s.RetentionMonths)
	c.Must(s.RetentionMonths <= maxMonths, "retention_months", "must be at most %d, is %d", maxMonths,
		s.RetentionMonths)
}
