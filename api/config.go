package api

import (
	"errors"
	"net/http"
	"net/netip"
	"time"
)

// Config is what an operator can set, and the pages.
type Config struct {
	// RequestTimeout bounds an ordinary request; taking in bodies,
	// recordings and the events channel have limits of their own. 30 s when zero.
	RequestTimeout time.Duration
	// StallTimeout ends a recording's way up or down when its client has not
	// moved for so long, or for half as long. 1 min when zero.
	StallTimeout time.Duration
	// TrustedProxies may say in X-Forwarded-For whom they speak for.
	TrustedProxies []netip.Prefix
	// Board is the live board, with the pages under /docs; nil leaves them out.
	Board http.Handler
}

func (c Config) withDefaults() Config {
	if c.RequestTimeout == 0 {
		c.RequestTimeout = 30 * time.Second
	}
	if c.StallTimeout == 0 {
		c.StallTimeout = time.Minute
	}
	return c
}

// Validate says what cannot work.
func (c Config) Validate() error {
	if c.RequestTimeout < 0 {
		return errors.New("api: RequestTimeout is negative")
	}
	if c.StallTimeout < 0 {
		return errors.New("api: StallTimeout is negative")
	}
	for _, p := range c.TrustedProxies {
		if !p.IsValid() {
			return errors.New("api: TrustedProxies has a network that is none")
		}
	}
	return nil
}
