// Package masterkey seals small secrets (an account's recording key, a
// provider's header) for keeping in a database, under the service's master
// keys.
//
// A keyring holds one or more keys of 32 bytes. The last one seals; all of them
// open. A key's id is a fingerprint of the key, so a key can never be kept
// under another's id. The keys come from the setting master_key
// (TRUNKLINE_MASTER_KEY: base64 or hex, several with commas between, the newest
// last) or from a file with one key a line, which a running process follows:
// it looks at the file's time before every use. The embedded default makes the
// file at first start, see Create.
//
// A sealed secret is bound to its place (table, account, version): moved
// elsewhere in the database it does not open.
//
// Table stores such secrets: it lists which keys they need and seals
// them anew, in batches, when Rotate has made the next key.
//
// It does not seal while its file cannot be read, because what it sealed then might
// never be opened again. It makes no key before Create was called, and drops no key
// that is in use. It has no goroutines; one lock guards the ring,
// and a lock on the file's folder lets only one process at a time change it.
package masterkey
