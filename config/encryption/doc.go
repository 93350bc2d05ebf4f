// Package encryption is an account's recording-encryption configuration
// (specification, area A): whether new recordings are sealed, with which
// algorithm, under which version of which key and salt, and every version there
// ever was.
//
// If this is your first change, read state.go (the table of transitions, pure)
// and body.go (what a PUT may say).
//
// Package api decides which callers may read and change a configuration. Keys are
// never deleted while their account exists, keys and salts are stored only sealed
// under a master key, and a read is answered only after its line of the audit log
// is written.
//
// One goroutine reads for all who wait, and writes their lines of the audit log,
// and ends when there are none. Changes of one account queue on a lock of the process;
// between processes the stored revision decides, and who finds another one than
// it read begins again.
package encryption
