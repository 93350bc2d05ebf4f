package tracing

import (
	"net/http"
	"strconv"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Serve begins the answering of a request: a part of the trace that its headers
// name, else of a new one. route is the pattern of its path, "" when it matched
// none; method is one of HTTP's own, else "". The path and the query are not
// told: they hold phone numbers and tokens.
func (t *Tracer) Serve(r *http.Request, method, route string) (*http.Request, Span) {
	if t == nil {
		return r, Span{}
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	name, about := method, []Attribute{semconv.URLScheme(scheme)}
	if method == "" {
		name = "HTTP"
		about = append(about, semconv.HTTPRequestMethodOther)
	} else {
		about = append(about, semconv.HTTPRequestMethodKey.String(method))
	}
	if route != "" {
		name += " " + route
		about = append(about, semconv.HTTPRoute(route))
	}
	ctx, span := t.begin(FromHTTP(r.Header).In(r.Context()), name, trace.SpanKindServer, about)
	return r.WithContext(ctx), span
}

// Answered records the response to a request. Only what is the server's fault
// is an error.
func (s Span) Answered(status int) {
	if s.span == nil {
		return
	}
	s.Set(semconv.HTTPResponseStatusCode(status))
	if status >= http.StatusInternalServerError {
		s.Fail(strconv.Itoa(status))
	}
}
