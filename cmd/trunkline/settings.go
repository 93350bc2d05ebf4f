package main

import (
	"io"
	"log/slog"

	"trunkline/config/settings"
	"trunkline/internal/logthrottle"
)

// Variables of commands that are no settings.
const (
	envPassword = "TRUNKLINE_PASSWORD" // of listen
	envAPIKey   = "TRUNKLINE_API_KEY"  // of demo

	envRecording = "TRUNKLINE_RECORDING_" // of recording: KEY, SALT, NEW_KEY, NEW_SALT
)

// settings loads the settings that the command line, the environment and the
// file make.
func (p *program) settings() (*settings.Settings, error) {
	s, _, err := p.settingsAndUnknown()
	return s, err
}

func (p *program) settingsAndUnknown() (s *settings.Settings, unknown []string, err error) {
	return settings.Load(settings.Source{
		File: p.config, Env: p.env, Flags: p.flags,
		IgnoreEnv: []string{
			envPassword, envAPIKey,
			envRecording + "KEY", envRecording + "SALT", envRecording + "NEW_KEY", envRecording + "NEW_SALT",
		},
	})
}

// logger writes as the settings say; a fault that lasts does not fill the log.
func logger(w io.Writer, s *settings.Log) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.Level)); err != nil {
		return nil, err // Validate has seen to it
	}
	options := &slog.HandlerOptions{Level: level}
	if s.Format == "json" {
		return slog.New(logthrottle.New(slog.NewJSONHandler(w, options))), nil
	}
	return slog.New(logthrottle.New(slog.NewTextHandler(w, options))), nil
}

// toolLog is the log of commands that do one thing: it is quiet unless
// something is wrong.
func (p *program) toolLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
