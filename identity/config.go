package identity

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"time"
)

const (
	issuer           = "trunkline"         // claim "iss" of tokens
	signingKeyPeriod = 30 * 24 * time.Hour // how long a signing key signs tokens
	signingKeyLead   = 24 * time.Hour      // time from its publication to its first signature
)

// Config has the settings, dependencies that package app sets, and values that tests
// replace. withDefaults replaces zero fields.
type Config struct {
	Settings
	Accounts AccountSettings
	// ReservedDomains are names of this server, of the platforms that it reads and of its
	// provider, in lower case: only the operator gives them to an account.
	ReservedDomains []string

	Argon2      Argon2
	HashSlots   int              // concurrent password hashes; default: one per CPU
	Now         func() time.Time // default: time.Now
	PartitionOf PartitionFunc    // nil: channel tokens do not name a partition
}

// PartitionFunc returns the Kafka partition of an account's new events. It does not block
// if the partition is cached.
type PartitionFunc func(ctx context.Context, account string) (int, error)

// Argon2 is the cost of hashing a password. The defaults are OWASP's for
// argon2id. Changing them changes new hashes only.
type Argon2 struct {
	MemoryKiB uint32 // default: 19 MiB
	Passes    uint32 // default: 2
	Lanes     uint8  // default: 1
}

func (c Config) withDefaults() Config {
	c.Argon2.MemoryKiB = cmp.Or(c.Argon2.MemoryKiB, 19*1024)
	c.Argon2.Passes = cmp.Or(c.Argon2.Passes, 2)
	c.Argon2.Lanes = cmp.Or(c.Argon2.Lanes, 1)
	c.HashSlots = cmp.Or(c.HashSlots, runtime.GOMAXPROCS(0))
	quotas := DefaultAccountSettings()
	c.Accounts.FilterBytes = cmp.Or(c.Accounts.FilterBytes, quotas.FilterBytes)
	c.Accounts.APIKeys, c.Accounts.Users = cmp.Or(c.Accounts.APIKeys, quotas.APIKeys), cmp.Or(c.Accounts.Users,
		quotas.Users)

	if c.Now == nil {
		c.Now = time.Now
	}

	return c
}

// storedNow returns the time as it is stored, in milliseconds.
func (c *Config) storedNow() time.Time { return time.UnixMilli(c.Now().UnixMilli()) }

func (a Argon2) check() error {
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
