// Package ingest stores bodies of call-center events and call records that arrive
// over HTTP: it splits a body into records and produces them to their raw topic. A
// body is accepted only when Kafka has acknowledged all of its records.
//
// The source's folder below format/ defines how a body of a format splits and which account a record
// names. The normalizer interprets records; a record that it cannot interpret becomes a dead letter.
// Ingest refuses a body that does not split into JSON objects, exceeds a size, or has a record that
// names an account its caller may not write to; nothing of such a body is stored.
//
// Overload: admission delays a body, unread, until memory is free, with a fair share for each caller,
// and refuses it with fault.KindLimited after Settings.ProduceTimeout. Memory stays within
// Settings.MaxInFlightBytes; Kafka's producer has a bound of its own.
//
// Bodies with an Idempotency-Key are stored once within 24 hours (keyStore). Their records have the header
// event.HeaderBody. Where the result of an earlier attempt is unknown, findRecords looks for them in what the
// raw topic got at the time of the attempts, and only the others are produced. Partitions that were added to
// the topic in between may hide them. A process that was stopped before it produced them may still do so after
// that: all attempts give the records the same event.HeaderIdentity, of which the normalizer takes the first.
//
// Goroutines: Accept runs in its caller's goroutine. With an Idempotency-Key a second one stores the body and a
// third renews its lease: they go on after Accept has returned, until the result is known, for at most
// storeTimeout and updateTimeout, and hold the body's memory. A process that ends before leaves a lease. Run
// deletes expired Idempotency-Keys until its context ends. There is one lock, admission.mu. It is held for a scan
// of the callers that have bodies, and never during I/O.
//
// # Files
//
// Read ingest.go.
//
//   - ingest.go, settings.go, metrics.go: a body from request to Kafka; settings and metrics
//   - body_admission.go: which bodies may be taken in at the same time
//   - read_body.go, content_type.go: reading a body
//   - build_records.go, kafka_keys.go: the records of a body, and the key of each
//   - idempotency.go, purge_deleted_accounts.go: bodies with an Idempotency-Key are stored once; the keys of a
//     deleted account
package ingest
