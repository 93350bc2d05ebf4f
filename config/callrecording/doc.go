// Package callrecording stores which calls of an account are recorded, and how long recordings are
// kept (docs/recordings.md). An account without a policy has that of the nearest account above it.
//
// It has no goroutines, locks or state in memory: every call reads the database, so that a change
// by another process applies to the next call.
package callrecording
