// Package cli has what all of Trunkline's commands share: the process as they see it, exit codes,
// settings, tables, progress and HTTP. The commands of each subject are in a folder below
// cmd/trunkline (directory, deadletter, recording, ...), which exports their constructors.
//
// Commands work with or without a running server on the same data directory. They write results to
// stdout, everything else to stderr, and return errors: Program.Run prints them and chooses the
// exit code.
//
// # Files
//
// Read cli.go.
//
//   - cli.go, signal.go: a program, its exit codes, signals
//   - program_settings.go, stores.go: settings, and the stores and Kafka of commands that work on them
//   - server_flags.go, http_requests.go, server_address.go: commands that talk to a server
//   - list_output.go, progress.go, time_argument.go: output and arguments
package cli
