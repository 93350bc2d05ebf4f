package masterkey

import "trunkline/internal/setting"

// Settings holds the settings of the master key. Their keys are in no group.
type Settings struct {
	Value setting.Secret `yaml:"master_key" doc:"keys that seal secrets at rest, 32 bytes each in base64 or hex, comma-separated, the newest last"`
	File  string         `yaml:"master_key_file" file:"text" doc:"file with the master keys, one a line; empty: master.key in data_dir"`
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	c.Must(s.Value == "" || s.File == "", "master_key", "set here and by master_key_file: unset one")
}
