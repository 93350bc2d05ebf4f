package sip

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"time"

	"trunkline/internal/setting"
)

// Config has the settings and limits. Zero limits select the defaults in the fields' comments. Listen
// must be an address.
type Config struct {
	Settings
	// TLS is the configuration of the TLS listener, and DialTLS that of connections to a trunk; nil trusts
	// the system's authorities.
	TLS, DialTLS *tls.Config
	// MinExpires is the shortest duration of a registration: 60 s.
	MinExpires time.Duration
	// NonceLifetime is the time within which a challenge must be answered: 5 min.
	NonceLifetime time.Duration
	Limits        Limits
}

// maxExpires is the longest duration of a registration.
const maxExpires = time.Hour

// Limits bounds the load that peers can cause. Only MaxCalls and MaxConnections apply to trusted
// networks.
type Limits struct {
	// PerAddress is the limit of messages per second from one address: 50, with bursts of twice that.
	// IPv6 addresses count by their /64, and by their /56 with twice the limit.
	PerAddress float64
	// Requests is the limit of requests per second from all untrusted addresses together: 1000, with
	// bursts of twice that.
	Requests float64
	// MaxCalls is the limit of concurrent legs, including those being set up. It is required.
	MaxCalls int
	// MaxConnections is the limit of concurrent connections of the TCP and of the TLS listener, each: 2000. One
	// address may have a tenth of it, counted as for PerAddress.
	MaxConnections int
	// MaxContacts is the limit of registered phones per user: 5. A further phone replaces the oldest.
	MaxContacts int
}

func (c Config) withDefaults() Config {
	c.MinExpires = cmp.Or(c.MinExpires, time.Minute)
	c.NonceLifetime = cmp.Or(c.NonceLifetime, 5*time.Minute)
	c.Limits.PerAddress = cmp.Or(c.Limits.PerAddress, 50)
	c.Limits.Requests = cmp.Or(c.Limits.Requests, 1000)
	c.Limits.MaxConnections = cmp.Or(c.Limits.MaxConnections, 2000)
	c.Limits.MaxContacts = cmp.Or(c.Limits.MaxContacts, 5)
	return c
}

// Validate checks c.
func (c Config) Validate() error {
	if c.Listen == "" || c.Listen == Off {
		return errors.New("sip: no address to listen on")
	}
	if c.Limits.MaxCalls < 1 {
		return errors.New("sip: Limits.MaxCalls is missing")
	}
	if c.TLSListen != "" && c.TLS == nil {
		return errors.New("sip: the TLS listener has no certificate")
	}

	shortest := c.withDefaults().MinExpires
	if shortest < time.Second || shortest > maxExpires {
		return errors.New("sip: the shortest registration is out of range")
	}

	return setting.Validate("sip", c.Settings)
}

// announcedAddr returns the host and port announced to peers, given the bound address.
func (c Config) announcedAddr(bound netip.AddrPort) (host string, port int, err error) {
	if c.Advertise == "" {
		return bound.Addr().String(), int(bound.Port()), nil
	}

	host, text, err := net.SplitHostPort(c.Advertise)
	if err != nil {
		return c.Advertise, int(bound.Port()), nil
	}

	number, err := strconv.ParseUint(text, 10, 16)
	if err != nil || number == 0 {
		return "", 0, errors.New("sip: the advertised port is invalid")
	}

	return host, int(number), nil
}
