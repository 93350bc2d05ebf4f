// Package balancer holds the configurations of balancers in front of fanout nodes: haproxy.cfg,
// which compose uses, nginx.conf and envoy.yaml. It adapts haproxy.cfg to nodes on this machine,
// for tests and trunkline-bench.
package balancer

import (
	_ "embed"
	"fmt"
	"net"
	"regexp"
	"strings"
)

//go:embed haproxy.cfg
var haproxyConfig string

// Node holds the addresses, host:port, of a node's public listener and of its metrics.
type Node struct {
	Public, Metrics string
}

// LocalFleet holds the addresses of a fleet on one machine.
type LocalFleet struct {
	Listen string // host:port of the balancer, plain HTTP
	Fanout []Node // nodes of the channel
	Core   Node   // node of everything else
	TLS    bool   // the public listeners use TLS; HAProxy does not verify their certificates
}

// HAProxy returns haproxy.cfg with the addresses of l in place of compose's.
func (l LocalFleet) HAProxy() (string, error) {
	var servers strings.Builder
	for i, n := range l.Fanout {
		fmt.Fprintf(&servers, "\tserver fanout-%d %s\n", i+1, l.server(n))
	}

	config := haproxyConfig
	for _, change := range []struct{ from, to string }{
		{`bind :9443 ssl crt /run/secrets/tls.*`, "bind " + l.Listen},
		{` resolvers docker init-addr.*`, ""},
		{`(?m)(^\tserver fanout-\d+ .*\n)+`, servers.String()},
		{`core:9443`, l.server(l.Core)},
	} {
		pattern := regexp.MustCompile(change.from)
		if !pattern.MatchString(config) {
			return "", fmt.Errorf("haproxy.cfg has no %s", change.from)
		}
		config = pattern.ReplaceAllLiteralString(config, change.to)
	}

	return config, nil
}

// server returns the address and options of a server line.
func (l LocalFleet) server(n Node) string {
	options := ""
	if l.TLS {
		options = " ssl verify none no-check-ssl"
	}
	_, port, _ := net.SplitHostPort(n.Metrics)
	return n.Public + " port " + port + options
}
