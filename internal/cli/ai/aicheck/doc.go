// Package aicheck tests an AI provider: it connects as the service would, holds
// one session with a tone and a few keys, and judges what comes back.
//
// If this is your first change, read check.go (the session), hear.go (what is
// kept of it) and judge.go (what is made of that).
//
// Addresses and headers are not restricted: they are the operator's own. It checks
// the protocol and not the conversation: a provider that does not answer a tone
// gets a warning, not a failure.
//
// One goroutine reads the connection and owns the received messages, until it
// has ended; Run waits for it. What it wants said waits in a channel of a few,
// and is dropped when that is full.
package aicheck
