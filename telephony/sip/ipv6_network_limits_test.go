package sip

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// One customer of a provider has 2^64 addresses of each of 256 networks.
func TestIPv6AddressesOfANetworkShareLimits(t *testing.T) {
	at := func(format string) func(int) string { return func(i int) string { return fmt.Sprintf(format, i) } }
	for name, c := range map[string]struct {
		address     func(message int) string
		messages    int // admitted of 100
		connections int
	}{
		"one address":         {func(int) string { return "2001:db8::1" }, 20, 2},
		"one /64":             {at("2001:db8::%x"), 20, 2},
		"one /56":             {at("2001:db8:0:%x::1"), 40, 4},
		"others of one /56":   {func(i int) string { return fmt.Sprintf("2001:db8:0:%x::%x", i%2, i) }, 40, 4},
		"one /56 for each":    {at("2001:db8:0:%x00::1"), 100, 20},
		"IPv4 addresses":      {at("192.0.2.%d"), 100, 20},
		"IPv4 within IPv6":    {at("::ffff:192.0.2.%d"), 100, 20},
		"link-local of zones": {at("fe80::1%%eth%d"), 20, 2},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMetrics(prometheus.NewRegistry())
			g := newSourceLimiter(Config{Limits: Limits{PerAddress: 10, Requests: 1000}}, &branchSigner{}, m)
			connections := &streamListener{maxConnections: 20, openConns: map[*streamConn]struct{}{},
				perNetwork: map[netip.Prefix]int{}}
			now := time.Now()
			messages, open := 0, []*streamConn(nil)

			for i := range 100 {
				from := netip.MustParseAddr(c.address(i))
				if g.admitSource(from, now) {
					messages++
				}
				if one := (&streamConn{remoteIP: from}); connections.admit(one) {
					open = append(open, one)
				}
			}

			if messages != c.messages || len(open) != c.connections {
				t.Errorf("%d messages and %d connections are admitted, want %d and %d", messages, len(open), c.messages,
					c.connections)
			}

			for _, one := range open {
				connections.forget(one)
			}

			if len(connections.perNetwork) != 0 {
				t.Errorf("closed connections are counted: %v", connections.perNetwork)
			}
		})
	}
}
