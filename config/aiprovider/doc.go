// Package aiprovider stores the accounts' AI providers (docs/ai.md): the WebSocket
// address for a call's audio, its format, and the headers of the handshake.
//
// If this is your first change, read parse_body.go (the valid requests), service.go (their
// effects) and package netguard (the addresses that a connection may use).
//
// A header's value is a secret. It is stored sealed under a master key, replaced by Mask in
// responses, and unsealed only to connect to the provider.
//
// Package api decides which callers may read and change providers, and package aisession
// opens sessions. For every connection the address that the host name resolves to is
// checked.
//
// The package has no goroutines, locks or state in memory: every call reads the database,
// so that a change by another process applies at once. An account has at most
// maxProviders.
//
// # Files
//
// Read provider.go and service.go.
//
//   - provider.go, document.go: a provider, and its configuration as callers send it
//   - queue_rule.go: the queues whose calls a provider hears
//   - service.go, providers_sql.go, purge_account.go, settings.go, metrics.go: create, change, list and delete; the
//     rows
//   - parse_body.go, field_parser.go, parse_headers.go, same_origin.go: reading and checking a body
//   - sealed_secrets.go, masked_document.go, open_secrets.go: sealed secrets; secrets as Mask in responses and
//     requests; a provider with its secrets for a session
package aiprovider
