package asterisk

import (
	"cmp"
	"fmt"
	"time"

	"trunkline/origination/eventdriver"
	"trunkline/telephony/ami"
)

// ownerCallerName is the name that the owner's phone shows. The number is the destination.
const ownerCallerName = "Click to call"

// Config has the settings, and what tests set: there zero is the default.
type Config struct {
	Settings
	eventdriver.Limits
	ActionTimeout time.Duration // limit for the response to an action
}

const dialTimeout = 5 * time.Second // limit for connecting and logging in

func (c Config) withDefaults() Config {
	c.ActionTimeout = cmp.Or(c.ActionTimeout, 5*time.Second)
	return c
}

func (c Config) manager() (ami.Config, error) {
	secured, err := c.TLS.Load()
	if err != nil {
		return ami.Config{}, fmt.Errorf("origination.asterisk: %w", err)
	}
	return ami.Config{
		Address: c.Address, TLS: secured, Username: c.Username, Secret: string(c.Secret), Events: "call",
		DialTimeout: dialTimeout, ActionTimeout: c.ActionTimeout,
	}, nil
}
