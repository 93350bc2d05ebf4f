package identity

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"time"
)

// Config has the settings of an operator. A zero field takes the value in its
// comment.
type Config struct {
	Issuer     string        // "trunkline"
	AccessTTL  time.Duration // 1 h: portal access tokens (auth.access_ttl)
	RefreshTTL time.Duration // 30 days: refresh tokens
	EventsTTL  time.Duration // 24 h: channel tokens (auth.events_ttl)
	KeyLife    time.Duration // 30 days: how long a signing key signs
	KeyLead    time.Duration // 24 h: how long it is published before it signs
	Argon2     Argon2
	HashSlots  int              // one per CPU: password hashes worked on at once
	Now        func() time.Time // time.Now
}

// Argon2 is the cost of hashing a password. The defaults are OWASP's for
// argon2id. Changing them changes new hashes only.
type Argon2 struct {
	MemoryKiB uint32 // 19 MiB
	Passes    uint32 // 2
	Lanes     uint8  // 1
}

// maxTokenTTL bounds every token's life, so that how long a retired signing
// key and a deleted user's revocation stay does not depend on the settings of
// the node that made the token.
const maxTokenTTL = 30 * 24 * time.Hour

func (c Config) withDefaults() Config {
	const day = 24 * time.Hour
	c.Issuer = cmp.Or(c.Issuer, "trunkline")
	c.AccessTTL = cmp.Or(c.AccessTTL, time.Hour)
	c.RefreshTTL = cmp.Or(c.RefreshTTL, 30*day)
	c.EventsTTL = cmp.Or(c.EventsTTL, day)
	c.KeyLife = cmp.Or(c.KeyLife, 30*day)
	c.KeyLead = cmp.Or(c.KeyLead, day)
	c.Argon2.MemoryKiB = cmp.Or(c.Argon2.MemoryKiB, 19*1024)
	c.Argon2.Passes = cmp.Or(c.Argon2.Passes, 2)
	c.Argon2.Lanes = cmp.Or(c.Argon2.Lanes, 1)
	c.HashSlots = cmp.Or(c.HashSlots, runtime.GOMAXPROCS(0))
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Validate returns what is invalid in the configuration.
func (c Config) Validate() error {
	c = c.withDefaults()
	for _, ttl := range []struct {
		name string
		is   time.Duration
	}{{"access_ttl", c.AccessTTL}, {"events_ttl", c.EventsTTL}} {
		if ttl.is < time.Second || ttl.is > maxTokenTTL {
			return fmt.Errorf("auth.%s: want between 1s and %s, have %s", ttl.name, maxTokenTTL, ttl.is)
		}
	}
	switch {
	case c.RefreshTTL < c.AccessTTL:
		return errors.New("identity: refresh tokens must live at least as long as access tokens")
	case c.KeyLead <= 0 || c.KeyLife <= c.KeyLead:
		return errors.New("identity: a signing key must sign for longer than it is published before")
	case c.HashSlots < 0:
		return errors.New("identity: the number of hash slots is negative")
	}
	return c.Argon2.validate()
}

func (a Argon2) validate() error {
	switch {
	case a.MemoryKiB < 8*uint32(a.Lanes) || a.MemoryKiB > 1<<20:
		return errors.New("argon2: memory is out of range")
	case a.Passes == 0 || a.Passes > 64:
		return errors.New("argon2: passes are out of range")
	case a.Lanes == 0 || a.Lanes > 64:
		return errors.New("argon2: lanes are out of range")
	}
	return nil
}
