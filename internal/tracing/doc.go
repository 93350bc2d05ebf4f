// Package tracing makes the spans of a trace (OpenTelemetry) and carries its
// context (W3C Trace Context) in HTTP requests and Kafka records.
//
// A nil *Tracer is tracing that is off: it begins nothing, allocates nothing,
// and adds no header. Where an event's cost counts, Sampled decides on the bytes
// of the header.
//
// A span says what was done, for which account and how it ended. It never has a
// token, a key, a phone number, an event's content or an error's text.
//
// It does not know where spans go: app makes the provider. There are no
// goroutines and no locks here.
package tracing
