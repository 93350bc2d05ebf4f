package tracing

import (
	"context"
	"log/slog"
)

// LogHandler adds trace_id to log lines within a trace.
func LogHandler(next slog.Handler) slog.Handler { return spanHandler{next} }

type spanHandler struct{ slog.Handler }

func (h spanHandler) Handle(ctx context.Context, line slog.Record) error {
	if id := TraceID(ctx); id != "" {
		line.AddAttrs(slog.String("trace_id", id))
	}
	return h.Handler.Handle(ctx, line)
}

func (h spanHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return spanHandler{h.Handler.WithAttrs(attributes)}
}

func (h spanHandler) WithGroup(name string) slog.Handler {
	return spanHandler{h.Handler.WithGroup(name)}
}
