// Package app builds the rooms of the chosen roles and owns their life.
//
// It refuses to have behaviour of its own: what is here wires, starts and
// stops. New opens backends and binds listeners, Run works until its context
// ends and then takes everything down in reverse, within drain_timeout.
package app
