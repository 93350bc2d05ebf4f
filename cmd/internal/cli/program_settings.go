package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"trunkline/internal/logthrottle"
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

// Password returns the password of a command: the first line of stdin, or else
// the variable EnvPassword.
func (p *Program) Password(command string, fromStdin bool) (string, error) {
	if fromStdin {
		return ReadPassword(p.In)
	}
	password := p.Getenv(EnvPassword)
	if password == "" {
		return "", Usagef("%s needs a password: set %s, or give --password-stdin", command, EnvPassword)
	}
	return password, nil
}

// ReadPassword reads a password from the first line of in.
func ReadPassword(in io.Reader) (string, error) { return ReadSecret(in, "password") }

// ReadSecret reads the first line of in; name is used in errors.
func ReadSecret(in io.Reader, name string) (string, error) {
	line, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading the %s: %w", name, err)
	}
	secret := strings.TrimRight(line, "\r\n")
	if secret == "" {
		return "", Usagef("there is no %s on stdin", name)
	}
	return secret, nil
}

// NewLogger returns the logger of the settings. It throttles repeated warnings.
func NewLogger(w io.Writer, s *settings.Log) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.Level)); err != nil {
		return nil, err // Settings.Validate rejects it before
	}
	options := &slog.HandlerOptions{Level: level}
	if s.Format == "json" {
		return slog.New(logthrottle.New(slog.NewJSONHandler(w, options))), nil
	}
	return slog.New(logthrottle.New(slog.NewTextHandler(w, options))), nil
}

// ToolLog returns the logger of management commands: warnings and errors, on stderr.
func (p *Program) ToolLog() *slog.Logger {
	return slog.New(slog.NewTextHandler(p.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
