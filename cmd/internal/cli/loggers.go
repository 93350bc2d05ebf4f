package cli

import (
	"io"
	"log/slog"

	"trunkline/internal/logthrottle"
	"trunkline/settings"
)

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
