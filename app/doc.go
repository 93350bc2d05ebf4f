// Package app builds the services of the configured roles, starts them and stops them.
//
// It has no behaviour of its own. New opens backends and binds listeners; Run works
// until its context ends and then stops everything in reverse order, within
// drain_timeout.
package app
