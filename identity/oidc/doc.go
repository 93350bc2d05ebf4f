// Package oidc is the client of the OpenID Connect provider that auth.oidc names.
// It verifies the provider's tokens, runs the code flow with PKCE (OpenID Connect
// Core 1.0, RFC 7636), and returns the user as the claims describe it.
//
// It refuses to know Trunkline's users and accounts: that is for package identity.
// No token, code or secret is logged or put in an error.
//
// # The provider
//
// Nothing is asked of the provider before the first login. Its metadata is then
// read, and read again after an hour, with new keys; while that fails the known
// metadata and keys stay in use. Without any, logins are refused as unavailable,
// and the provider is asked again after a back-off. A token with an unknown key
// makes the keys be read again, five times at once and then once in ten seconds,
// however many such tokens there are. Each request takes at most ten seconds and
// 1 MiB, and follows no redirect.
//
// # Goroutines and locks
//
// The goroutine of a request asks the provider, one for its metadata at a time
// (Client.discovering). go-oidc reads the keys in a goroutine that lives as long
// as that request.
package oidc
