package cli

import (
	"strings"

	"trunkline/settings"
)

// Environment variables that commands read and that are not settings.
const (
	EnvPassword = "TRUNKLINE_PASSWORD" // of login and listen
	EnvAPIKey   = "TRUNKLINE_API_KEY"  // of demo, cdr import and recording send

	EnvRecording = "TRUNKLINE_RECORDING_" // of recording: KEY, SALT, NEW_KEY, NEW_SALT
)

// Settings loads the settings from the file, the environment and the flags.
func (p *Program) Settings() (*settings.Settings, error) {
	s, _, err := p.SettingsAndUnknown()
	return s, err
}

// SettingsAndUnknown also returns the names of TRUNKLINE_ variables that are not settings.
func (p *Program) SettingsAndUnknown() (s *settings.Settings, unknown []string, err error) {
	return settings.Load(settings.Source{
		File: p.config, Env: p.Env, Flags: p.flags,
		IgnoreEnv: []string{
			EnvPassword, EnvAPIKey,
			EnvRecording + "KEY", EnvRecording + "SALT", EnvRecording + "NEW_KEY", EnvRecording + "NEW_SALT",
		},
	})
}

// Getenv returns a variable's value, "" when it is not set.
func (p *Program) Getenv(name string) string {
	for _, entry := range p.Env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
