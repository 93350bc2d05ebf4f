// Package oidc is the client of the OpenID Connect provider in auth.oidc. It verifies
// the provider's tokens, runs the code flow with PKCE (OpenID Connect Core 1.0, RFC
// 7636), and returns the user as the claims describe it.
//
// It has no access to Trunkline's users and accounts: package identity maps them. No
// token, code or secret is logged or put in an error.
//
// # The provider
//
// No request is sent to the provider before the first login. The client then reads the
// metadata, and reads it again after an hour, with new keys; while that fails it uses the
// last metadata and keys. Before the first success, logins are refused as unavailable, and
// the next request is sent after a back-off. A token with an unknown key causes a request
// for the keys, limited to a burst of five and then one in ten seconds. Each request
// takes at most ten seconds and 1 MiB, and follows no redirect.
//
// # Goroutines and locks
//
// Requests are sent by the goroutines of callers; Client.discoverMu serializes those for
// the metadata. go-oidc reads the keys in a goroutine that ends with its request.
package oidc
