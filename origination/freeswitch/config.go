package freeswitch

import (
	"time"

	"trunkline/origination/eventdriver"
	"trunkline/telephony/esl"
)

// Caller id on the owner's phone.
const (
	ownerCallerID   = "{destination}"
	ownerCallerName = "Click to call"
)

// Config has the settings, and fields that only tests set, for which zero selects the default.
type Config struct {
	Settings
	eventdriver.Limits
	CommandTimeout time.Duration // see esl.Config
}

// queueTimeout is the longest wait of a call when the switch limits sessions per second.
const queueTimeout = 8 * time.Second

func (c Config) socketConfig() esl.Config {
	return esl.Config{Address: c.Address, User: c.User, Password: string(c.Password), CommandTimeout: c.CommandTimeout}
}
