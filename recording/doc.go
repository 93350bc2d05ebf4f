// Package recording stores call recordings, sealed or plain according to the configuration
// of their account. If the configuration cannot be read, an upload is refused. Package
// recording/envelope defines the format of a sealed recording.
//
// If this is your first change, read upload.go and read_audio.go; recordings_sql.go is all the SQL. A
// recording is an object in a store (a directory or an S3-compatible bucket; complete or
// absent) and a row in the database. The row decides: it is written after the object and
// deleted before it, so that a crash can leave only an object without a row, which Sweep
// removes a day later.
//
// A recording that should be sealed and cannot be is never stored in plain: the upload gets
// 503, and trunkline_recording_refused_total counts it. No byte is released before it is
// authenticated, and the audio of a stored recording never changes. Package api decides
// which callers may read.
//
// A recording knows its call (Call): from its upload, and what that leaves open from the call's
// record, whichever comes first. Nothing is done when a record comes: a recording without it looks
// for it again and again (complete_from_cdr.go). The other way, reports of call records ask OfCalls for the
// recordings of the rows that they show.
//
// Calls that this process connects are recorded by Recorder: packets that the caller's port receives
// and sends are queued, decoded twice a second and appended to a journal, sealed record by record
// where the account's encryption is on (live_journal.go). At the end of the call the journal
// becomes an ordinary recording; Run does the same with the journals of a process that was killed.
// A live recording has one goroutine, which ends with the recording; Recorder.Run waits for what is stored.
// Lock order: liveCall.mu, liveRecording.mu; liveRecording.mu is also taken under the locks of rtp, and takes none.
//
// Run announces stored recordings, completes them and sweeps; it ends with
// its context. A recording whose announcement failed is announced again until
// it succeeds: recording.stored is delivered at least once. Memory use does not depend
// on a recording's length. The package has no queue; the server's connections bound the
// number of concurrent uploads.
//
// # Files
//
// Read upload.go and read_audio.go: a recording on its way in and out.
//
//   - service.go, settings.go, metrics.go, background_tasks.go: the service, settings, metrics, what runs
//   - upload.go, read_audio.go, sealing.go, list.go, delete.go: storing and opening recordings, with which
//     key; listing and deleting them
//   - recordings_sql.go: the row that makes a recording exist
//   - call_parameters.go, complete_from_cdr.go, upload_parameters.go: the call of a recording: from
//     parameters, from its record, from a platform's name
//   - stored_event.go: the event of a stored recording
//   - store.go, store_dir.go, store_s3.go, store_s3_credentials.go, store_s3_reader.go: the objects: a
//     directory, or S3
//   - recorder.go, live_recording.go, rtp_clock.go, live_journal.go, live_recording_files.go: calls that
//     this process connects: which are recorded, both voices on one clock, the file while a call lasts,
//     and how it becomes a recording
//   - announcement.go: what is heard before a call is recorded
//   - ogg_opus.go: a recording as Ogg Opus, stored or downloaded
//   - retention.go: retention and legal holds
//   - quota.go: how many bytes an account may have
//   - reseal.go, offline.go, sweep_orphans.go: sealing again under another key, opening without a server,
//     removing what no row names
package recording
