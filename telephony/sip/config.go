package sip

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"
)

// Config has the addresses and limits of a Server. Zero values, except of Listen, take the defaults
// given at each field.
type Config struct {
	// Listen is the host:port of the UDP and TCP listeners.
	Listen string
	// Advertise is the host or host:port announced to peers. Without a port, Listen's is used. If
	// empty, the bound address is announced, which must not be the unspecified one.
	Advertise string
	// TrustedNetworks are the networks of PBXs and trunks, which may call without credentials.
	TrustedNetworks []netip.Prefix
	// MinExpires and MaxExpires bound the duration of a registration: 60 s and 1 h.
	MinExpires, MaxExpires time.Duration
	// NonceLifetime is the time within which a challenge must be answered: 5 min.
	NonceLifetime time.Duration
	Limits        Limits
}

// Limits bounds the load that peers can cause. Only MaxCalls and MaxConnections apply to trusted
// networks.
type Limits struct {
	// PerAddress is the limit of messages per second from one address: 50, with bursts of twice that.
	PerAddress float64
	// Requests is the limit of requests per second from all untrusted addresses together: 1000, with
	// bursts of twice that.
	Requests float64
	// Failures is the number of failed authentications per minute after which an address gets no
	// answers: 10. A success resets the count.
	Failures int
	// MaxCalls is the limit of concurrent legs, including those being set up: 4000.
	MaxCalls int
	// MaxConnections is the limit of concurrent TCP connections: 2000. One address may have a tenth of
	// it.
	MaxConnections int
	// MaxContacts is the limit of registered phones per user: 5. A further phone replaces the oldest.
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

// advertised returns the host and port announced to peers, given the bound address.
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
