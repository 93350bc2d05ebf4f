// Package envelope defines the sealed recording on disk: it seals a stream of audio into
// Trunkline's recording format and opens it again, as a stream or from any position.
// docs/recording-format.md describes every byte; recording/reader has a second
// implementation written from that page alone.
//
// If this is your first change, read header.go (the fields of a header), keys.go (the
// derivation of keys) and suite.go (the protection of one chunk).
//
// No byte of a chunk is released before the chunk is authenticated, and only exactly one
// complete recording is opened. The package has no access to stores of keys or
// recordings. It uses the standard library only, works in Go's FIPS 140-3 mode, has no
// goroutines, and needs the same 130 KiB for any length of recording. Errors are plain
// sentinels (errors.go) without a fault kind: the caller decides whether a bad recording
// is an error of its client.
//
// Only RootCache is safe for concurrent use, and it has the only lock.
package envelope
