package tracing_test

import (
	"strings"
	"testing"

	"trunkline/event"
)

func TestStateIsCarriedWithinBounds(t *testing.T) {
	on, seen := newTracer(1)
	for state, kept := range map[string]bool{"a=1,b=2": true, "b=" + strings.Repeat("x", 254): true,
		"a=" + strings.Repeat("x", 600): false} {
		carrier, span := on.StartRawRecord(record(event.HeaderTrace, good, event.HeaderTraceState, state),
			event.TopicRaw, "g")
		span.End(nil)
		headers := carrier.AppendHeaders(nil)
		if kept && (len(headers) != 2 || string(headers[1].Value) != state) || !kept && len(headers) != 1 {
			t.Errorf("%d bytes of state become %s", len(state), headers)
		}
	}

	for _, s := range seen.Ended() {
		if s.Parent().TraceID().String() != good[3:35] {
			t.Errorf("%v is not in the trace", s)
		}
	}
}
