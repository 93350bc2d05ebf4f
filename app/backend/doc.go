// Package backend opens the configured Kafka, Redis, database and store of recordings,
// or their embedded replacements if no address is set. The server and the management
// commands both open them here, so that they use the same ones. Callers need not
// distinguish between them.
//
// Each function logs one line with the opened backend and its limits (such as "not
// replicated"); no line has a secret in it. An invalid address is an error; a server
// that does not answer yet is an error of later calls.
//
// The embedded Redis has one goroutine, its clock, which the close function stops; the
// goroutines of the embedded broker are those of package internal/kafka/embedded.
package backend
