// Package envelope is the sealed recording on disk: it seals a stream of audio
// into Trunkline's recording format and opens it again, as a stream or at any
// place. docs/recording-format.md describes every byte; recording/reader holds
// a second implementation written from that page alone.
//
// If this is your first change, read header.go (what a header holds), keys.go
// (which key is derived from which) and suite.go (how one chunk is protected).
//
// No byte of a chunk is released before the chunk is authenticated, and only exactly
// one complete recording is opened. The package does not know where keys or
// recordings are stored. It uses the standard library only, works in Go's
// FIPS 140-3 mode, has no goroutines, and needs the same 130 KiB for any length
// of recording. Errors are plain sentinels (errors.go): whether a bad recording
// is the caller's fault or ours, is for the caller to decide.
//
// Only Roots is safe for concurrent use, and it has the one lock.
package envelope
