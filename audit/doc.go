// Package audit keeps the audit log: who did what, from where, to what, and how
// it ended. Entries are rows of the database, lines of the log (msg=audit) and,
// when a Publisher is given, records of the topic audit.
//
// If this is your first change, read entry.go, then record.go (how an entry is
// stored) and chain.go (how it enters the chain).
//
// # What is promised
//
// What grants or changes something (a login, a key that is read, a user that is
// made) is recorded or does not happen: a change inserts its entry in its own
// transaction (Insert), other actions wait for the entry to be durable
// (Record) and are refused when it is not. What refuses something (a wrong
// password) or ends it is reported (Report): it happens although the database
// is away. Every entry is a line of the log either way, and
// trunkline_audit_failures_total counts those that the database did not take.
//
// Entries never contain a secret or a phone number. An entry's texts are
// bounded and have no control characters.
//
// # The chain
//
// An inserted entry is pending. Run moves pending entries into the chain, about
// ten times a second on every node; the lock on the row of audit_chain makes
// nodes take turns, so that the chain never forks. An entry's hash covers its
// fields, its number and the hash before it (chain.go). Verify checks all of
// it, from the newest entry that retention has deleted.
//
// The chain has no secret: anyone who may write to the tables can compute it anew
// from any entry on. Such a rewrite shows where its heads are kept elsewhere:
// Run logs the head of the chain (msg="audit chain"), and the topic has every
// entry with its hash.
//
// # Goroutines, and when it is full
//
// Run is one goroutine, ended by its context: it extends the chain, publishes
// and prunes. One more stores what waits, many entries in one statement, and
// ends when none waits. At most maxQueued reported entries wait; more are in
// the log only and counted as failures. Recorded entries wait in their
// caller's goroutine.
//
// Log.mu is held for a few assignments; nothing is called with it held.
package audit
