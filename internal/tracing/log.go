package tracing

import (
	"context"
	"log/slog"
)

// LogHandler adds trace_id to the lines that are logged within a trace.
func LogHandler(next slog.Handler) slog.Handler { return logHandler{next} }

type logHandler struct{ slog.Handler }

func (h logHandler) Handle(ctx context.Context, line slog.Record) error {
	if id := TraceID(ctx); id != "" {
		line.AddAttrs(slog.String("trace_id", id))
	}
	return h.Handler.Handle(ctx, line)
}

func (h logHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attributes)}
}

func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }
