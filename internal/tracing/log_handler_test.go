package tracing_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"trunkline/internal/tracing"
)

func TestLogLinesNameTheTrace(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(tracing.LogHandler(slog.NewTextHandler(&out, nil))).With("a", 1)
	log.InfoContext(tracing.Carrier{Parent: good}.Extract(context.Background()), "within")

	if !strings.Contains(out.String(), "a=1 trace_id=4bf92f3577b34da6a3ce929d0e0e4736") {
		t.Error(out.String())
	}

	out.Reset()
	log.InfoContext(t.Context(), "without")
	if strings.Contains(out.String(), "trace_id") {
		t.Error(out.String())
	}
}
