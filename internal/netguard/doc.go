// Package netguard keeps connections to URLs that accounts choose (AI providers,
// webhooks) out of our own networks: it checks the URL, and for every connection the
// address that its name was resolved to.
//
// No goroutines, no locks, no state.
package netguard
