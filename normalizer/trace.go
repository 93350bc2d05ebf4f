package normalizer

import (
	"trunkline/format"
	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
)

// traces holds the spans of those records of a batch that are in a sampled trace, from
// the start of processing until the result is durable. It is empty while tracing is
// disabled.
type traces struct {
	tracer  *tracing.Tracer
	group   string
	current tracing.Carrier // of the current record; zero: no span
	spans   []tracing.Span
	sampled bool // the last span belongs to the current record
}

// reset drops the spans of a batch that is started again. A span without an end is not
// exported.
func (t *traces) reset() {
	clear(t.spans)
	t.spans, t.current, t.sampled = t.spans[:0], tracing.Carrier{}, false
}

// begin starts the span of the next record.
func (t *traces) begin(topic string, raw *kafka.Record) {
	if t.tracer == nil {
		return
	}
	carrier, span := t.tracer.StartRawRecord(raw, topic, t.group)
	t.current, t.sampled = carrier, span.Sampled()
	if t.sampled {
		t.spans = append(t.spans, span)
	}
}

// setAccount sets the account of the current record.
func (t *traces) setAccount(account string) {
	if t.sampled {
		t.spans[len(t.spans)-1].Set(tracing.Account(account))
	}
}

// reject marks the span of the current record: it becomes a dead letter.
func (t *traces) reject(rejection *format.Rejection) {
	if t.sampled {
		t.spans[len(t.spans)-1].Fail(string(rejection.Kind))
	}
}

// discard removes the span of the current record.
func (t *traces) discard() {
	if t.sampled {
		t.spans = t.spans[:len(t.spans)-1]
	}
	t.current, t.sampled = tracing.Carrier{}, false
}

// end ends the spans after the results of the records are durable.
func (t *traces) end() {
	for _, span := range t.spans {
		span.End(nil)
	}
	t.reset()
}
