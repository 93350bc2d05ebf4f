// Package aicheck tests an AI provider: it connects as the service would, holds
// one session with a tone and a few keys, and judges what comes back.
//
// If this is your first change, read check.go (the session), hear.go (what is
// kept of it) and judge.go (what is made of that).
//
// It refuses to guard addresses or headers: they are the operator's own. It
// judges the protocol, not the conversation: a provider that has nothing to say
// to a tone is warned about, not failed.
//
// One goroutine reads the connection and owns the received messages, until it
// has ended; Run waits for it. What it wants said waits in a channel of a few,
// and is dropped when that is full.
package aicheck
