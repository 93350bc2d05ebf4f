package identity

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"time"
)

const (
	issuer  = "trunkline"         // of tokens
	keyLife = 30 * 24 * time.Hour // how long a signing key signs
	keyLead = 24 * time.Hour      // how long it is published before it signs
)

// Config has the settings, dependencies that package app sets, and values that tests
// replace: a zero field gets the default in its comment.
type Config struct {
	Settings
	Argon2    Argon2
	HashSlots int              // one per CPU: concurrent password hashes
	Now       func() time.Time // time.Now
	Partition Partition        // none
}

// Partition returns the Kafka partition of an account's new events. It does not wait if
// the partition is known.
type Partition func(ctx context.Context, account string) (int, error)

// Argon2 is the cost of hashing a password. The defaults are OWASP's for
// argon2id. Changing them changes new hashes only.
type Argon2 struct {
	MemoryKiB uint32 // 19 MiB
	Passes    uint32 // 2
	Lanes     uint8  // 1
}

func (c Config) withDefaults() Config {
	c.Argon2.MemoryKiB = cmp.Or(c.Argon2.MemoryKiB, 19*1024)
	c.Argon2.Passes = cmp.Or(c.Argon2.Passes, 2)
	c.Argon2.Lanes = cmp.Or(c.Argon2.Lanes, 1)
	c.HashSlots = cmp.Or(c.HashSlots, runtime.GOMAXPROCS(0))
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
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
