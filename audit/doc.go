// Package audit keeps the audit log: actor, address, action, target and outcome. Entries
// are rows of the database, lines of the log (msg=audit) and, if a Publisher is given,
// records of the topic audit.
//
// If this is your first change, read entry.go, then store_entries.go (how an entry is stored)
// and extend_chain.go (how it enters the chain).
//
// # Guarantees
//
// An action that grants or changes something (a login, a read of a key, a new user) does
// not happen unless it is recorded: a change inserts its entry in its own transaction
// (Tx, Insert), and other actions wait until the entry is durable (Record) and are refused
// if it is not. Refusals (a wrong password) and ends are reported (Report): they happen
// even if the database is unavailable. In both cases every entry is a line of the log, and
// trunkline_audit_failures_total counts the entries that could not be stored in the
// database.
//
// Entries never contain a secret or a phone number. An entry's texts are bounded and
// have no control characters.
//
// # The chain
//
// An inserted entry is pending. Run moves pending entries into the chain, about ten
// times a second on every node; the lock on the row of audit_chain serializes the nodes,
// so that the chain never forks. An entry's hash covers its fields, its number and the
// hash before it (chain_entry.go). Verify checks all of it, from the newest entry that
// retention has deleted.
//
// The hashes are not keyed: anyone with write access to the tables can recompute them from
// any entry on. Copies of the chain's heads outside of the database reveal that: Run logs
// the head (msg="audit chain"), and the topic has every entry with its hash.
//
// # Goroutines and bounds
//
// Run is one goroutine, ended by its context: it extends the chain, publishes and
// prunes. Another one stores queued entries, many in one statement, and ends when the
// queue is empty. At most maxQueuedEntries reported entries wait; further ones are only logged,
// and counted as failures. Callers of Record wait.
//
// Log.mu is held for a few assignments; no function is called while it is held.
//
// # Files
//
// Read entry.go and store_entries.go, then extend_chain.go and verify_chain.go.
//
//   - log.go, settings.go, metrics.go: the log, settings, metrics
//   - entry.go, caller.go, recent_reports.go, actor_rate.go: an entry, who caused it, reports that are
//     written once, the rate of what one actor causes
//   - store_entries.go, list_entries.go, prune_chain.go: writing, listing and deleting entries
//   - chain_entry.go, chain_head.go, extend_chain.go, verify_chain.go: the hash chain and its check
//   - publish_chain.go: the chain on its topic
package audit
