// Package cli has what all of Trunkline's commands share: the process as they see it, exit codes,
// settings, tables, progress and HTTP. The commands of each subject are in a folder below
// cmd/trunkline (directory, deadletter, recording, ...), which exports their constructors.
//
// Commands work with or without a running server on the same data directory. They write results to stdout, everything else to stderr, and return
// errors: Program.Run prints them and chooses the exit code.
package cli
