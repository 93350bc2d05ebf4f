// Package cli is the frame of Trunkline's command lines: the process that a
// command sees, exit codes, settings, tables, progress and HTTP. Each subject
// has a package of its own below it (directory, deadletter, recording, ...),
// which exports the constructors of its commands.
//
// Commands work beside a running server on the same data directory, or without
// one. They write results to stdout, everything else to stderr, and return
// errors: Program.Run prints them and chooses the exit code.
package cli
