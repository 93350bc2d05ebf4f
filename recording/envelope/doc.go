// Package envelope is the sealed recording on disk: it seals a stream of audio
// into Trunkline's recording format and opens it again, as a stream or at any
// place. docs/recording-format.md describes every byte; recording/reader holds
// a second implementation written from that page alone.
//
// If this is your first change, read header.go (what a header holds), keys.go
// (which key is derived from which) and suite.go (how one chunk is protected).
//
// It refuses to release a byte of a chunk that it has not authenticated, to
// open anything that is not exactly one complete recording, and to know where
// keys or recordings are kept. It uses the standard library only, works in Go's
// FIPS 140-3 mode, has no goroutines, and needs the same 130 KiB for any length
// of recording. Errors are plain sentinels (errors.go): whether a bad recording
// is the caller's fault or ours, is for the caller to decide.
//
// Only Roots is safe for concurrent use, and it has the one lock.
package envelope
