// Package aiprovider stores the accounts' AI providers (docs/ai.md): the WebSocket
// address for a call's audio, its format, and the headers of the handshake.
//
// If this is your first change, read body.go (the valid requests), service.go (their
// effects) and package netguard (the addresses that a connection may use).
//
// A header's value is a secret. It is sealed under a master key for its provider, never
// shown (responses have Mask in its place), and unsealed only to connect to the
// provider.
//
// Package api decides which callers may read and change providers, and package aisession
// opens sessions. A host name is never trusted: the address that it resolves to is
// checked for every connection.
//
// No goroutines, no locks, no state in memory: every call reads the database, so that a
// change by another process applies at once. An account has at most maxProviders.
package aiprovider
