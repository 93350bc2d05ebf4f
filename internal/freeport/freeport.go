// Package freeport finds loopback ports for the servers of tests.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The ports are below Linux's range for outgoing connections, so that a connection of
// another test cannot take a port before its server listens, or while the server
// restarts.
const (
	firstPort = 10000
	lastPort  = 32000
)

// Find returns n different ports that nothing listens on.
func Find(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range 100 * n {
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := net.Listen("tcp4", loopbackAddress(port))
		if err != nil {
			continue // in use, perhaps found a moment ago: listeners stay open until all are found
		}
		defer listener.Close()
		ports = append(ports, port)
		if len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("no %d free ports between %d and %d", n, firstPort, lastPort)
}

// Addresses returns n different loopback addresses that nothing listens on.
func Addresses(t testing.TB, n int) []string {
	t.Helper()
	ports, err := Find(n)
	if err != nil {
		t.Fatal(err)
	}
	addresses := make([]string, n)
	for i, port := range ports {
		addresses[i] = loopbackAddress(port)
	}
	return addresses
}

// Address returns a loopback address that nothing listens on.
func Address(t testing.TB) string {
	t.Helper()
	return Addresses(t, 1)[0]
}

func loopbackAddress(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
