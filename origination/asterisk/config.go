package asterisk

import (
	"fmt"
	"time"

	"trunkline/origination/eventdriver"
	"trunkline/telephony/ami"
)

// ownerCallerName is the name that the owner's phone shows. The number is the destination.
const ownerCallerName = "Click to call"

// Config has the settings, and fields that only tests set, for which zero selects the default.
type Config struct {
	Settings
	eventdriver.Limits
	ActionTimeout time.Duration // see ami.Config
}

func (c Config) managerConfig() (ami.Config, error) {
	secured, err := c.TLS.Load()
	if err != nil {
		return ami.Config{}, fmt.Errorf("origination.asterisk: %w", err)
	}
	return ami.Config{
		Address: c.Address, TLS: secured, Username: c.Username, Secret: string(c.Secret), Events: "call",
		ActionTimeout: c.ActionTimeout,
	}, nil
}
