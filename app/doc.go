// Package app builds the services of the configured roles, starts them and
// stops them.
//
// It refuses to have behaviour of its own: what is here wires, starts and
// stops. New opens backends and binds listeners, Run works until its context
// ends and then takes everything down in reverse, within drain_timeout.
package app
