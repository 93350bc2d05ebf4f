// Package envelope implements the format of sealed recordings: it seals a stream of audio
// and opens it again, as a stream or from any position. docs/recording-format.md describes
// every byte; recording/reader has a second implementation, written from that page alone.
//
// If this is your first change, read header.go (the fields of a header), keys.go (the
// derivation of keys) and cipher_suite.go (the protection of one chunk).
//
// No byte of a chunk is released before the chunk is authenticated, and data before or
// after the recording is an error. The package has no access to stores of keys or
// recordings. It uses the standard library only, works in Go's FIPS 140-3 mode, starts no
// goroutines, and needs 130 KiB for a recording of any length. Its errors (errors.go) have
// no fault kind: the caller decides whether a bad recording is an error of its client.
//
// Only RootCache is safe for concurrent use, and it has the only lock.
//
// # Files
//
// Read cipher_suite.go and header.go beside docs/recording-format.md.
//
//   - cipher_suite.go, gcm.go, cbc.go: the two suites of ciphers
//   - header.go, keys.go: the header, and the keys in it
//   - root_key.go, root_key_cache.go: the key of an account
//   - seal.go, open.go, reader.go, rewrap.go: writing, reading as a stream, reading anywhere, and
//     another key for the same recording
//   - buffers.go, errors.go: buffers and errors
package envelope
