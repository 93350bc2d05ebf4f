// Package ingest is the door in: it takes a body of call-center events or call
// records over HTTP, splits it into records, and produces them to their raw
// topic. A body is accepted only when Kafka has all of it.
//
// How a body of a format splits, and which account a record names, is in the
// source's folder below format/. Whether a record makes sense is the normalizer's
// business: one that does not becomes a dead letter alone. What ingest
// does insist on is that a body splits into JSON objects, that its sizes hold,
// and that every account a record names is one the caller may write to; else
// the whole body is refused and nothing of it is stored.
//
// It has no goroutines of its own: Accept works in its caller's. When too many
// bytes are in flight it answers at once with fault.KindUnavailable, and a
// caller with too many bodies in flight gets fault.KindLimited, so memory stays
// within Config.MaxInFlightBytes however many clients push.
//
// There is one lock, in callers, held for a map access.
package ingest
