// Package recording keeps call recordings: sealed when their account's
// configuration says so, plain when it says so, and not at all when it cannot
// be told. The bytes of a sealed recording are recording/envelope's.
//
// If this is your first change, read upload.go and read.go; rows.go is all the
// SQL. A recording is an object in a store (a directory or an S3-compatible
// bucket; whole or absent) and a row in the database. The row is the truth: it
// is written after the object and deleted before it, so what a crash leaves
// behind is an object without a row, and Sweep removes it a day later.
//
// A recording that should be sealed is never stored in plain: the upload gets 503,
// and trunkline_recording_refused_total counts it. No byte is released before it is
// authenticated, and the audio of a stored recording never changes. Package api
// decides which callers may read.
//
// Run announces what was stored and sweeps; it is the package's only goroutine
// and ends with its context. A recording whose announcement failed is announced
// again until it succeeds: recording.stored comes at least once. Memory does
// not depend on a recording's length. Nothing queues here; how many recordings
// are written at once is bounded by the server's connections.
package recording
