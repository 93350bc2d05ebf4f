package pbx

import (
	"errors"
	"time"

	"trunkline/telephony/sip"
)

// Config has the settings of a Driver. Zero values take the defaults given at each field.
type Config struct {
	MediaServer        string        // this node's name, for call records
	OwnerTimeout       time.Duration // how long the owner's phones ring; default 30 s
	DestinationTimeout time.Duration // how long a destination rings; default 60 s
	DrainTimeout       time.Duration // limit of shutting down; default 5 s
	MaxCalls           int           // concurrent calls; default 1000
	OutboxSize         int           // records waiting to be published; default 20,000
	LocalPrefix        string        // of destinations that localcall.Destination takes: "ai-"
	Codecs             []sip.Codec   // in order of preference; default sip.AllCodecs
	Trunk              Trunk
	// MayDial reports whether an account's phones may call a number by the trunk; nil allows all.
	MayDial func(accountID, number string) bool
}

// Trunk is the SIP trunk for numbers that are not a user's extension.
type Trunk struct {
	Address            string // host or host:port; "" is no trunk
	Username, Password string // of its digest; "" is none
	CallerID           string // shown instead of the caller's extension
	StripPrefix        string // removed from a number before it is sent
	Transport          string // UDP or TCP; default UDP
}

func (c Config) withDefaults() Config {
	c.OwnerTimeout = or(c.OwnerTimeout, 30*time.Second)
	c.DestinationTimeout = or(c.DestinationTimeout, time.Minute)
	c.DrainTimeout = or(c.DrainTimeout, 5*time.Second)
	c.MaxCalls = or(c.MaxCalls, 1000)
	c.OutboxSize = or(c.OutboxSize, 20_000)
	c.LocalPrefix = or(c.LocalPrefix, "ai-")
	if len(c.Codecs) == 0 {
		c.Codecs = sip.AllCodecs()
	}
	return c
}

func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

// Validate checks c.
func (c Config) Validate() error {
	switch {
	case c.MediaServer == "":
		return errors.New("sip driver: the media server has no name")
	case c.OwnerTimeout < 0 || c.DestinationTimeout < 0 || c.DrainTimeout < 0 || c.MaxCalls < 0 || c.OutboxSize < 0:
		return errors.New("sip driver: a limit is negative")
	case c.Trunk.Address == "" && c.Trunk != Trunk{}:
		return errors.New("sip driver: the trunk has no address")
	}
	return nil
}
