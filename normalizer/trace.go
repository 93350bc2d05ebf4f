package normalizer

import (
	"trunkline/format"
	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
)

// traces are the spans of a batch's records: of each that is in a sampled trace,
// from its turn until what became of it is durable. With tracing off there are
// none.
type traces struct {
	tracer  *tracing.Tracer
	group   string
	current tracing.Carrier // of the record at hand; zero: it has no span
	spans   []tracing.Span
	has     bool // the last span is that of the record at hand
}

// reset forgets the spans of a batch that is begun again. What never ends is
// never sent.
func (t *traces) reset() {
	clear(t.spans)
	t.spans, t.current, t.has = t.spans[:0], tracing.Carrier{}, false
}

// begin begins the span of the next record.
func (t *traces) begin(topic string, raw *kafka.Record) {
	if t.tracer == nil {
		return
	}
	carrier, span := t.tracer.First(raw, topic, t.group)
	t.current, t.has = carrier, span.Sampled()
	if t.has {
		t.spans = append(t.spans, span)
	}
}

// about says whose the record at hand is.
func (t *traces) about(account string) {
	if t.has {
		t.spans[len(t.spans)-1].Set(tracing.Account(account))
	}
}

// failed says that the record at hand becomes a dead letter.
func (t *traces) failed(no *format.Rejection) {
	if t.has {
		t.spans[len(t.spans)-1].Fail(string(no.Kind))
	}
}

// drop takes back the span of the record at hand.
func (t *traces) drop() {
	if t.has {
		t.spans = t.spans[:len(t.spans)-1]
	}
	t.current, t.has = tracing.Carrier{}, false
}

// done ends the spans.
func (t *traces) done() {
	for _, span := range t.spans {
		span.End(nil)
	}
	t.reset()
}
