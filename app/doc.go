// Package app builds the services of the configured roles, starts them and
// stops them.
//
// It has no behaviour of its own: it connects, starts and stops the packages. New opens backends and binds listeners, Run works until its context
// ends and then takes everything down in reverse, within drain_timeout.
package app
