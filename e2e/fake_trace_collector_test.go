package e2e

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector is an OpenTelemetry collector, which receives spans by OTLP over HTTP.
type collector struct {
	url string

	mu       sync.Mutex
	requests []http.Header // their headers
	spans    []span
}

// span is one received span.
type span struct {
	trace, id, parent, name string // ids in hexadecimal
	traceState              string // tracestate
	kind                    tracepb.Span_SpanKind
	failed                  bool
	attributes              map[string]string // attributes, including the resource's
	durationNS              uint64            // nanoseconds
}

func newCollector(t testing.TB) *collector {
	t.Helper()
	c := &collector{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collectorpb.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" ||
			r.Header.Get("Content-Type") != "application/x-protobuf" {
			t.Errorf("%s %s, %s: %v", r.Method, r.URL, r.Header.Get("Content-Type"), err)
		}

		c.store(r.Header, &request)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))

	c.url = server.URL
	t.Cleanup(server.Close)
	return c
}

func (c *collector) store(header http.Header, request *collectorpb.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.requests = append(c.requests, header)
	for _, of := range request.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				about := map[string]string{}
				for _, a := range slices.Concat(of.Resource.Attributes, s.Attributes) {
					about[a.Key] = attributeText(a.Value)
				}

				c.spans = append(c.spans, span{
					trace: hex.EncodeToString(s.TraceId), id: hex.EncodeToString(s.SpanId),
					parent:     hex.EncodeToString(s.ParentSpanId),
					traceState: s.TraceState, name: s.Name, kind: s.Kind, attributes: about,
					failed:     s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR,
					durationNS: s.EndTimeUnixNano - s.StartTimeUnixNano,
				})
			}
		}
	}
}

func attributeText(v *commonpb.AnyValue) string {
	switch v := v.Value.(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *commonpb.AnyValue_BoolValue:
		return fmt.Sprint(v.BoolValue)
	}
	return v.String()
}

// receivedSpans returns all received spans.
func (c *collector) receivedSpans() []span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// find returns the first span that matches.
func (c *collector) find(matches func(span) bool) (span, bool) {
	all := c.receivedSpans()
	at := slices.IndexFunc(all, matches)
	if at < 0 {
		return span{}, false
	}
	return all[at], true
}

// await waits for a span with a name and a parent ("" for none).
func (c *collector) await(t testing.TB, trace, parent, name string) span {
	t.Helper()
	var found span
	eventually(t, name, func() (err error) {
		var ok bool
		found, ok = c.find(func(s span) bool { return s.trace == trace && s.parent == parent && s.name == name })
		if !ok {
			err = fmt.Errorf("not below %q of %s, among:\n%s", parent, trace, c)
		}
		return err
	})

	return found
}

// String formats the received spans.
func (c *collector) String() string {
	var b strings.Builder
	for _, s := range c.receivedSpans() {
		fmt.Fprintf(&b, "%s %s<-%s %s %v\n", s.trace, s.id, s.parent, s.name, s.attributes)
	}
	return b.String()
}
