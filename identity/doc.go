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
//
// # Files
//
// Read identity.go, the words of the room, then login.go and token.go: from a password to a principal.
//
//   - identity.go, service.go, config.go, settings.go, metrics.go: accounts, users, keys,
//     principals; the service; settings and metrics
//   - directory.go, directoryfile.go, seed.go, account_sorter.go: the directory in memory;
//     directory.yaml, and the first start
//   - tree.go, accounts.go, account_place.go, domains.go, affinity.go: accounts: the tree, their
//     changes, where one may stand, domains; the account that a balancer goes by
//   - users.go, userupdate.go, userstate.go, lookup.go, validate.go, etag.go: users: their changes,
//     what is kept of each in memory, finding one, checks of fields
//   - apikey.go, grant.go, scope.go, sight.go: API keys, what a caller may grant, scopes, what a
//     role sees
//   - device.go, phone.go, portal_ha1.go: devices and phones, and the digest of a SIP password
//   - login.go, attempt.go, limiter.go, limiter_redis.go, knownaddress.go: a login, its limits,
//     addresses that a user has logged in from
//   - password.go, hash_slots.go, passwordchange.go, passwordrules.go: hashes, how many at once and
//     whose, changes and rules of passwords
//   - otp.go: one-time passwords
//   - oidc.go, oidc_check.go: logins at an OpenID Connect provider
//   - session.go, token.go, token_rate.go, token_cache.go, signingkey.go, revocation.go, expired.go: refresh
//     tokens, access tokens, the keys that sign them, what revokes and deletes them
//   - filter.go, filter_mismatch.go, selection.go: filters of a channel login, what they select,
//     and why not
//   - poll.go, freshness.go, change.go, broadcast.go, cache.go, striped_lock.go: following the
//     database: reloading, how old memory may be, telling of changes; caches and locks
//   - purge.go: deleting the data of deleted accounts
//   - random_secret.go, secret_tables.go, millis.go: secrets, the tables that have sealed ones,
//     times in the database
package identity
