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
// Read program.go.
//
//   - program.go, signal.go, usage_errors.go: a program, its exit codes, signals, and the errors of wrong usage
//   - program_settings.go, loggers.go, stores.go: settings, loggers, and the stores and Kafka of commands that
//     work on them
//   - server_flags.go, server_url.go, client_tls.go, http_requests.go: commands that talk to a server
//   - list_output.go, progress.go, time_argument.go, read_secret.go: output, arguments, and secrets from stdin
package cli
