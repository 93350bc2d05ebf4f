// Package aiprovider stores the accounts' AI providers (docs/ai.md): where a
// call's audio can be sent, in which format, and with which headers.
//
// If this is your first change, read body.go (what a request may say),
// service.go (what is done with it) and package netguard (where a connection may go).
//
// A header's value is a secret. It is sealed under a master key for its
// provider, never shown (responses have Mask in its place), and opened for
// those who connect.
//
// Package api decides which callers may read and change providers, and package
// aisession opens sessions. A host name is never trusted: the address that it
// resolves to is checked for every connection.
//
// No goroutines, no locks, no state in memory: every question goes to the
// database, so that what another process changed counts at once. An account
// keeps at most maxProviders.
package aiprovider
