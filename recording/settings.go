package recording

import "trunkline/internal/setting"

// Settings holds the settings of recordings.
type Settings struct {
	URL      setting.URL   `yaml:"url" doc:"s3://KEY:SECRET@host:port/bucket of an S3-compatible store, with ?tls=false or &region=R where needed; empty: recordings in data_dir"`
	MaxBytes setting.Bytes `yaml:"max_bytes" doc:"size of the largest recording that is accepted; 0: no limit"`

	MaxAccountBytes setting.Bytes `yaml:"max_account_bytes" doc:"stored bytes of all recordings of an account, above which uploads are refused; 0: no limit"`
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings { return Settings{MaxBytes: 1 << 30, MaxAccountBytes: 1 << 40} }

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	if s.URL != "" {
		_, err := ParseS3URL(string(s.URL))
		c.NoError(err, "url")
	}
	c.Must(s.MaxBytes >= 0, "max_bytes", "must not be negative, is %s", s.MaxBytes)
	c.Must(s.MaxAccountBytes >= 0, "max_account_bytes", "must not be negative, is %s", s.MaxAccountBytes)
}
