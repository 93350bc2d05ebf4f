package sip

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// Config is how the server listens and what it puts up with. Zero values of
// all but Listen take the defaults that their comments name.
type Config struct {
	// Listen is host:port, for UDP and TCP.
	Listen string
	// Advertise is the host or host:port that peers are told, Listen's port
	// when it has none; the address bound when empty, which must then not be
	// the unspecified one.
	Advertise string
	// TrustedNetworks may call without proving who they are: PBXs and trunks.
	TrustedNetworks []netip.Prefix
	// MinExpires and MaxExpires bound a registration's life: 60 s, 1 h.
	MinExpires, MaxExpires time.Duration
	// NonceLifetime is how long a challenge may be answered: 5 min.
	NonceLifetime time.Duration
	Limits        Limits
}

// Limits bounds what peers can ask for. Trusted networks are held to MaxCalls
// and MaxConnections only.
type Limits struct {
	// PerAddress is messages a second from one address: 50, and twice that at
	// once.
	PerAddress float64
	// Requests is requests a second from all addresses that are not trusted:
	// 1000, and twice that at once.
	Requests float64
	// Failures is how often an address may fail to prove itself in a minute
	// before it gets no answer at all: 10. A success clears them.
	Failures int
	// MaxCalls is legs at once, being set up or up: 4000.
	MaxCalls int
	// MaxConnections is TCP connections at once: 2000, and a tenth for one
	// address.
	MaxConnections int
	// MaxContacts is phones of one user: 5. One more replaces the oldest.
	MaxContacts int
}

func (c Config) withDefaults() Config {
	c.MinExpires = or(c.MinExpires, time.Minute)
	c.MaxExpires = or(c.MaxExpires, time.Hour)
	c.NonceLifetime = or(c.NonceLifetime, 5*time.Minute)
	c.Limits.PerAddress = or(c.Limits.PerAddress, 50)
	c.Limits.Requests = or(c.Limits.Requests, 1000)
	c.Limits.Failures = or(c.Limits.Failures, 10)
	c.Limits.MaxCalls = or(c.Limits.MaxCalls, 4000)
	c.Limits.MaxConnections = or(c.Limits.MaxConnections, 2000)
	c.Limits.MaxContacts = or(c.Limits.MaxContacts, 5)
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
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("sip: the listen address: %w", err)
	}
	if addr, err := netip.ParseAddr(host); c.Advertise == "" && (host == "" || err == nil && addr.IsUnspecified()) {
		return errors.New("sip: an address to advertise is needed when listening on all")
	}
	if d := c.withDefaults(); d.MinExpires < time.Second || d.MinExpires > d.MaxExpires {
		return errors.New("sip: the bounds of a registration's life are reversed or too short")
	}
	return nil
}

// advertised is what peers are told, given the address that was bound.
func (c Config) advertised(bound netip.AddrPort) (host string, port int, err error) {
	if c.Advertise == "" {
		return bound.Addr().String(), int(bound.Port()), nil
	}
	host, text, err := net.SplitHostPort(c.Advertise)
	if err != nil {
		return c.Advertise, int(bound.Port()), nil
	}
	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil || number == 0 {
		return "", 0, errors.New("sip: the advertised port is not one")
	}
	return host, int(number), nil
}
