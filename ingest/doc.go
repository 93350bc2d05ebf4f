// Package ingest stores bodies of call-center events and call records that arrive
// over HTTP: it splits a body into records and produces them to their raw topic. A
// body is accepted only when Kafka has acknowledged all of its records.
//
// How a body of a format splits, and which account a record names, is defined in
// the source's folder below format/. Whether a record has a meaning is decided by
// the normalizer: a record without one becomes a dead letter. Ingest refuses a body
// that does not split into JSON objects, exceeds a size, or has a record that names
// an account its caller may not write to; nothing of such a body is stored.
//
// Overload: a body waits unread in admission until there is memory for it, each
// caller in turn, and is refused with fault.KindLimited after
// Config.ProduceTimeout. Memory stays within Config.MaxInFlightBytes; Kafka's
// producer has a bound of its own.
//
// Bodies with an Idempotency-Key are stored once within 24 hours: keyStore.
//
// Goroutines: Accept works in its caller's; Run deletes expired Idempotency-Keys
// and ends with its context. There is one lock, admission.mu. It is held for a scan
// of the callers that have bodies, and never during I/O.
package ingest
