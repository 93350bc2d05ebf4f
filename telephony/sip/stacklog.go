package sip

import (
	"context"
	"log/slog"
)

// stackLogger takes what the SIP stack logs. It is where alone the stack tells
// of messages that it cannot parse: they are counted. Attributes are left out,
// for they have the messages in them.
type stackLogger struct {
	metrics *metrics
	log     *slog.Logger
}

// unparsed is what the stack says of a message that it cannot parse.
const unparsed = "failed to parse"

// Enabled is slog.Handler's.
func (l stackLogger) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

// Handle is slog.Handler's.
func (l stackLogger) Handle(ctx context.Context, record slog.Record) error {
	if record.Message == unparsed {
		l.metrics.malformed.Inc()
		return nil
	}
	l.log.DebugContext(ctx, "SIP stack: "+record.Message)
	return nil
}

// WithAttrs is slog.Handler's.
func (l stackLogger) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup is slog.Handler's.
func (l stackLogger) WithGroup(string) slog.Handler { return l }
