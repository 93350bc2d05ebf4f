// Package identity manages accounts, users, API keys and tokens. It logs users in,
// issues and verifies tokens, and keeps the account tree in memory.
//
// It does not handle HTTP. It authorizes only one thing: whether an account is in the
// caller's tree; callers check everything else. No password, token or key is ever
// logged, stored in plain text or put in an error.
//
// # Memory and the database
//
// The database is authoritative. Memory has the account tree, the API keys' hashes, the
// signing keys and the revocations: all that the verification of a token or key needs,
// so that it does no I/O and works while the database is unavailable. Users are read at
// each login. A change raises a counter in its own transaction; Run polls the counter
// and reloads stale data, so that a change by another process is visible within a
// second, and one through this Service at once. A token or key that memory does not have
// triggers an early poll, at most 20 times a second.
//
// # Goroutines
//
// Run is one goroutine, ended by its context: it follows changes, rotates the signing
// key and deletes expired rows. The package starts no others.
//
// # Overload
//
// Password hashes cost memory on purpose, so only Config.HashSlots are computed at once;
// a login that waits longer than hashTimeout is refused as unavailable, and hashSlots decides
// whose turn it is. Failed logins and issued tokens are limited (see Limiter).
//
// # Locks
//
// Service.pollMu is held while memory is reloaded, and within it revocations.mu or
// broadcast.mu, never both. No function is called while one of the latter two is held.
package identity
