// Package identity knows accounts, users, API keys and tokens, and who may see
// what. It logs users in, makes and checks tokens, and keeps the account tree
// in memory.
//
// It knows no HTTP, and of authorization only whether an account is in the caller's
// tree: callers check everything else. No password, token or key is ever logged,
// stored in plain text or put in an error.
//
// # Memory and the database
//
// The database is the truth. In memory are the account tree, the API keys'
// hashes, the signing keys and the revocations: all that checking a token or a
// key needs, so that it does no I/O and goes on while the database is away.
// Users are read at each login. A change raises a counter in its own
// transaction; Run polls the counter and reloads what is stale, so a change
// made by another process is seen within a second, and one made through this
// Service at once. A token or key that memory does not know makes it look
// early, at most 20 times a second.
//
// # Goroutines
//
// Run is one goroutine, ended by its context: it follows changes, rotates the
// signing key and deletes what has expired. Nothing else runs here.
//
// # When it is full
//
// Password hashes cost memory on purpose, so only Config.HashSlots are worked
// on at once; a login that waits longer than hashWait is refused as
// unavailable. Failed logins are limited (see Limiter).
//
// # Locks
//
// Service.polling is held while memory is brought up to date, and within it
// revocations.mu or changes.mu, never both. Nothing is called with the latter
// two held.
package identity
