// Package tracing creates spans (OpenTelemetry) and propagates their context (W3C
// Trace Context) in HTTP requests and Kafka records.
//
// A nil *Tracer disables tracing: it starts no span, allocates nothing, and adds no
// header. On paths where the cost per event matters, Sampled decides from the bytes of
// the header.
//
// A span contains the operation, the account and the result. It never contains a
// token, a key, a phone number, an event's content or an error's text.
//
// Package app creates the provider, which determines where spans are sent. The package
// has no goroutines and no locks.
package tracing
