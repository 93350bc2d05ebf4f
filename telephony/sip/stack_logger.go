package sip

import (
	"context"
	"log/slog"
)

// stackLogger is the slog.Handler of the SIP stack. It counts the messages that the stack cannot
// parse, which the stack reports only in its log. It drops attributes, because they contain whole
// messages.
type stackLogger struct {
	metrics *metrics
	log     *slog.Logger
}

// parseFailureMessage is the stack's log text for a message that it cannot parse.
const parseFailureMessage = "failed to parse"

// Enabled implements slog.Handler.
func (l stackLogger) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn
}

// Handle implements slog.Handler.
func (l stackLogger) Handle(ctx context.Context, record slog.Record) error {
	if record.Message == parseFailureMessage {
		l.metrics.malformed.Inc()
		return nil
	}
	l.log.DebugContext(ctx, "SIP stack: "+record.Message)
	return nil
}

// WithAttrs implements slog.Handler.
func (l stackLogger) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l stackLogger) WithGroup(string) slog.Handler { return l }
