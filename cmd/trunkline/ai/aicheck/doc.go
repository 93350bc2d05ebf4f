// Package aicheck tests an AI provider: it connects as the server does, runs one session with a
// tone and a few key presses, and checks the received messages.
//
// If this is your first change, read check.go (the session), receive.go (the record of the
// received messages) and judge.go (the report).
//
// Addresses and headers are not restricted, because the operator sets them. It checks the
// protocol and not the conversation: a provider that does not answer a tone gets a warning, not a
// failure.
//
// One goroutine reads the connection and owns the received messages until the connection has
// ended; Run waits for it. Its answers go to the writer through a small channel; it drops them
// when the channel is full.
package aicheck
