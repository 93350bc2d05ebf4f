package recording

import (
	"cmp"
	"strings"

	"trunkline/internal/setting"
)

// Settings holds the settings of recordings.
type Settings struct {
	URL      setting.URL   `yaml:"url" doc:"s3://KEY:SECRET@host:port/bucket of an S3-compatible store, with ?tls=false or &region=R where needed; empty: recordings in data_dir"`
	MaxBytes setting.Bytes `yaml:"max_bytes" doc:"size of the largest recording that is accepted; 0: no limit"`

	Format    string `yaml:"format" doc:"format in which recordings of Trunkline's own calls are stored, two channels at 8 kHz: wav, 16 bits, or opus, a fifth of its size, encoded when the call has ended"`
	PauseKeys string `yaml:"pause_keys" doc:"keys that pause and resume the recording of a call when caller or callee presses them, such as *7; empty: none"`

	MaxAccountBytes setting.Bytes `yaml:"max_account_bytes" doc:"stored bytes of all recordings of an account, above which uploads are refused and calls not recorded; 0: no limit"`
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings {
	return Settings{Format: "wav", MaxBytes: 1 << 30, MaxAccountBytes: 1 << 40}
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	if s.URL != "" {
		_, err := ParseS3URL(string(s.URL))
		c.NoError(err, "url")
	}
	c.OneOf("format", cmp.Or(s.Format, "wav"), "wav", formatOpus)
	c.Must(len(s.PauseKeys) <= 8 && strings.Trim(s.PauseKeys, "0123456789*#ABCD") == "", "pause_keys",
		"must be at most 8 of the keys 0-9 * # A-D, is %q", s.PauseKeys)
	c.Must(s.MaxBytes >= 0, "max_bytes", "must not be negative, is %s", s.MaxBytes)
	c.Must(s.MaxAccountBytes >= 0, "max_account_bytes", "must not be negative, is %s", s.MaxAccountBytes)
}
