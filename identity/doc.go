// Package identity manages accounts, users, API keys and tokens. It logs users in,
// issues and verifies tokens, and keeps the account tree in memory.
//
// It does not handle HTTP. It authorizes only one thing: whether an account is in the
// caller's tree; callers check everything else. No password, token or key is ever
// logged, stored in plain text or put in an error.
//
// # Three types
//
// Each has fields, locks and tables of its own, and knows only those before it:
//
//   - Directory: the account tree, users, devices and API keys, in memory and in the database.
//   - Tokens: signing keys, sessions, revocations and the filters of channel tokens; it issues
//     tokens, and verifies tokens and API keys.
//   - Credentials: passwords, one-time passwords, OpenID Connect, the limits of attempts and the
//     addresses that users log in from; it has Tokens issue what a login answers.
//
// What they share stands below all three and knows none: changes, which writes and follows the
// database; passwords, which hashes; phonePasswords; the Limiter and the audit log. New makes
// them, and registers with changes what each reloads. Service is the three in one struct.
//
// What happens to a user in the Directory ends tokens by rows, not by calls: the transaction
// that deletes a user stores the revocation of the user's id (revokeUser), a new password
// raises the user's generation and deletes the refresh tokens (updatePassword), and a new role
// is in the user's row. Tokens of every node compare tokens with what these rows left in
// memory, and the revocation of a user's id makes the Directory forget the user.
//
// # Memory and the database
//
// The database is authoritative. Memory has the account tree, the API keys' hashes, the
// signing keys and the revocations: all that the verification of a token or key needs,
// so that it does no I/O and works while the database is unavailable. Users are read at
// each login. A change raises a counter in its own transaction (changes.tx); Run polls the
// counter and reloads stale data, so that a change by another process is visible within a
// second, and one by this process at once. A token or key that memory does not have
// triggers an early poll, at most 20 times a second.
//
// # Goroutines
//
// Service.Run is one goroutine, ended by its context: it follows changes, rotates the signing
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
// databaseChanges.changeSlot is held during a change, and databaseChanges.pollMu while memory is reloaded, also at
// the end of a change. Within it one of userStates.mu, revocations.mu and changeSignal.mu is held,
// never two. A lock of Credentials.phoneLocks is held while a phone authenticates. All other
// locks are held alone. No function is called while a lock other than databaseChanges.changeSlot,
// databaseChanges.pollMu and phoneLocks is held.
//
// # Files
//
// Read identity.go, the words of the room, then login.go and token.go: from a password to a principal.
//
//   - identity.go, service.go, config.go, settings.go, metrics.go: accounts, users, keys,
//     principals; the three types made and run; settings and metrics
//
// Directory:
//
//   - directory.go, directory_snapshot.go, user_state.go, directory_lookup.go: the type; accounts and API
//     keys, and what is kept of users, in memory; finding what memory does not have
//   - account_tree.go, accounts.go, account_tree_limits.go, check_account_names.go: accounts: the tree, their
//     changes, where one may stand, domains
//   - directory_file.go, seed.go, directory_file_accounts.go: directory.yaml, and the first start
//   - users.go, user_update.go, field_checks.go, etag.go: users: their changes, checks of fields
//   - api_key.go, credential_grant.go, api_key_scope.go, role_visibility.go: API keys, what a caller may grant,
//     scopes, what a role sees
//   - device.go, phone_password.go: devices, and the hashes of phones' passwords
//   - account_settings.go, purge_deleted_accounts.go: quotas; deleting the data of deleted accounts
//
// Tokens:
//
//   - token.go, token_verification.go, token_cache.go, token_rate.go: the type and its access tokens, their
//     verification and that of API keys, how many are issued
//   - portal_session.go, channel_token.go: portal sessions and refresh tokens, channel tokens
//   - signing_key.go, token_revocation.go: the keys that sign, what revokes tokens
//   - channel_filter.go, stored_filter.go, filter_mismatch.go, filter_selection.go: filters of a channel
//     login, large ones, what they select, and why not
//
// Credentials:
//
//   - credentials_service.go, login.go, phone_authentication.go: the type, logins, authentication of phones
//   - login_attempt.go, failure_limiter.go, failure_limiter_redis.go, known_address.go: the limits of
//     attempts, addresses that a user has logged in from
//   - password_change.go, otp.go: changes of passwords, one-time passwords
//   - oidc_login.go: logins at an OpenID Connect provider
//
// Below all three:
//
//   - database_changes.go, database_poll.go, memory_freshness.go, change_signal.go: writing and following the
//     database: reloading, how old memory may be, telling of changes
//   - password_hashing.go, password_hash_slots.go, password_rules.go: hashes, how many at once and whose,
//     rules
//   - bounded_cache.go: caches
//   - random_secret.go, secret_tables.go, database_times.go: secrets, the tables that have sealed ones,
//     times in the database
package identity
