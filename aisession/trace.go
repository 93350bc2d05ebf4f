package aisession

import (
	"context"

	"trunkline/internal/tracing"
)

// beginSpan begins the span of the session's life, in the trace of the incoming call.
func (s *Session) beginSpan(ctx context.Context) context.Context {
	r := &s.request
	ctx, s.span = s.service.deps.Tracer.Start(ctx, "ai_session", tracing.Account(r.Provider.AccountID),
		tracing.Text("trunkline.ai_session.id", s.sessionID),
		tracing.Text("trunkline.ai_session.provider_id", r.Provider.ID),
		tracing.Text("trunkline.ai_session.way", r.Ingress))
	s.trace = tracing.FromContext(ctx)
	return ctx
}

// endSpan records how the session ended.
func (s *Session) endSpan() {
	s.span.Set(tracing.Text("trunkline.ai_session.reason", string(s.ending.Reason)))
	switch s.ending.Reason {
	case ProviderLost, ProviderRefused, ProviderTooLarge, ProviderSilent, InternalError:
		s.span.Fail(string(s.ending.Reason))
	}
	s.span.End(nil)
}

// connectInSpan calls connect in a span. The trace context is not sent to the provider.
func (s *Session) connectInSpan(ctx context.Context) (*providerConn, error) {
	tracer := s.service.deps.Tracer
	if tracer == nil {
		return s.connect(ctx)
	}
	ctx, span := tracer.StartClient(s.trace.Extract(ctx), "ai_session connect")
	c, err := s.connect(ctx)
	span.End(err)
	return c, err
}
