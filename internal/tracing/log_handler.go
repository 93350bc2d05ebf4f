package tracing

import (
	"context"
	"log/slog"
)

// LogHandler adds trace_id to log lines within a trace.
func LogHandler(next slog.Handler) slog.Handler { return traceIDHandler{next} }

type traceIDHandler struct{ slog.Handler }

func (h traceIDHandler) Handle(ctx context.Context, line slog.Record) error {
	id := TraceID(ctx)
	if id != "" {
		line.AddAttrs(slog.String("trace_id", id))
	}
	return h.Handler.Handle(ctx, line)
}

func (h traceIDHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return traceIDHandler{h.Handler.WithAttrs(attributes)}
}

func (h traceIDHandler) WithGroup(name string) slog.Handler {
	return traceIDHandler{h.Handler.WithGroup(name)}
}
