package freeswitch

import (
	"cmp"
	"time"

	"trunkline/origination/eventdriver"
	"trunkline/telephony/esl"
)

// What the owner's phone shows.
const (
	ownerCallerID   = "{destination}"
	ownerCallerName = "Click to call"
)

// Config has the settings, and what tests set: there zero is the default.
type Config struct {
	Settings
	eventdriver.Limits
	CommandTimeout time.Duration // limit for the reply to a command
}

const (
	dialTimeout  = 5 * time.Second // limit for connecting and logging in
	queueTimeout = 8 * time.Second // longest wait of a call when the switch limits sessions per second
)

func (c Config) withDefaults() Config {
	c.CommandTimeout = cmp.Or(c.CommandTimeout, 5*time.Second)
	return c
}

func (c Config) socket() esl.Config {
	return esl.Config{
		Address: c.Address, User: c.User, Password: string(c.Password),
		DialTimeout: dialTimeout, CommandTimeout: c.CommandTimeout,
	}
}
