package pbx

import (
	"errors"
	"time"

	"trunkline/telephony/sip"
)

// Config is how calls are placed. Zero values take the defaults that their
// comments name.
type Config struct {
	MediaServer        string        // this node's name, for call records
	OwnerTimeout       time.Duration // how long an owner's phones ring: 30 s
	DestinationTimeout time.Duration // how long a destination rings: 60 s
	DrainTimeout       time.Duration // how long shutting down may take: 5 s
	MaxCalls           int           // at once: 1000
	OutboxSize         int           // records that may wait to be published: 20,000
	LocalPrefix        string        // of destinations that localcall.Destination takes: "ai-"
	Codecs             []sip.Codec   // in order of preference: sip.AllCodecs
	Trunk              Trunk
	// MayDial says whether an account's phones may call a number by the trunk;
	// nil: they may.
	MayDial func(accountID, number string) bool
}

// Trunk is where numbers go that are nobody's extension.
type Trunk struct {
	Address            string // host or host:port; "" is no trunk
	Username, Password string // of its digest; "" is none
	CallerID           string // shown in place of the caller's extension
	StripPrefix        string // taken off a number before it is sent
	Transport          string // UDP or TCP: UDP
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
