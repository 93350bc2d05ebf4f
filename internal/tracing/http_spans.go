package tracing

import (
	"net/http"
	"strconv"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// StartServer starts the span of a request: in the trace of its headers, or else in a new
// one. route is the pattern of its path, "" if none matched; method is a standard HTTP
// method, else "". The span does not contain the path and the query, which may contain
// phone numbers and tokens.
func (t *Tracer) StartServer(r *http.Request, method, route string) (*http.Request, Span) {
	if t == nil {
		return r, Span{}
	}

	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}

	name, attributes := method, []Attribute{semconv.URLScheme(scheme)}
	if method == "" {
		name = "HTTP"
		attributes = append(attributes, semconv.HTTPRequestMethodOther)
	} else {
		attributes = append(attributes, semconv.HTTPRequestMethodKey.String(method))
	}

	if route != "" {
		name += " " + route
		attributes = append(attributes, semconv.HTTPRoute(route))
	}

	ctx, span := t.startSpan(FromHTTP(r.Header).Extract(r.Context()), name, trace.SpanKindServer, attributes)
	return r.WithContext(ctx), span
}

// SetStatusCode records the status code of a request's response. Only codes of server
// faults are errors.
func (s Span) SetStatusCode(status int) {
	if s.span == nil {
		return
	}
	s.Set(semconv.HTTPResponseStatusCode(status))
	if status >= http.StatusInternalServerError {
		s.Fail(strconv.Itoa(status))
	}
}
