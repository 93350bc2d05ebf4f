// Package encryption stores an account's recording-encryption configuration: whether new recordings
// are sealed, with which algorithm, under which version of which key and salt, and all earlier
// versions.
//
// If this is your first change, read account_config.go (the table of transitions, without I/O) and
// parse_change.go (the valid bodies of a PUT).
//
// Package api decides which callers may read and change a configuration. Keys are never
// deleted while their account exists, keys and salts are stored only sealed under a
// master key, and a read returns only after its audit entry is written.
//
// One goroutine (of Service.reads) reads for all waiting callers and writes their audit
// entries; it ends when no caller waits. A lock serializes the changes of one account in
// the process. The stored revision detects a concurrent change by another process, after
// which the change is computed again.
package encryption
