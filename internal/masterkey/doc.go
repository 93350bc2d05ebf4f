// Package masterkey seals small secrets (an account's recording key, a provider's
// header) for storage in a database, under the service's master keys.
//
// A keyring holds one or more keys of 32 bytes. The last one seals; all of them unseal.
// A key's id is a fingerprint of the key, so a key can never be stored under another's
// id. The keys come from the setting master_key (TRUNKLINE_MASTER_KEY: base64 or hex,
// several with commas between, the newest last) or from a file with one key a line. A
// running process follows the file: it checks the file's modification time before every
// use. The embedded default creates the file at the first start, see Create.
//
// A sealed secret is bound to its location (table, account, version): moved elsewhere in
// the database it cannot be unsealed.
//
// SealedTable is a table of such secrets: it lists the keys they need and seals them again, in
// batches, after Rotate has created the next key.
//
// It does not seal while its file cannot be read, because the secret could then be lost.
// It creates no key before Create was called, and removes no key that is in use. It has
// no goroutines; one lock guards the ring, and a lock on the file's folder serializes
// the processes that change it.
package masterkey
