// Package netguard prevents connections to the operator's own networks through URLs
// that accounts choose (AI providers, webhooks): it checks the URL and, for every
// connection, the resolved address.
//
// No goroutines, no locks, no state.
package netguard
