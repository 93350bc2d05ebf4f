package testservice

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Below the range from which Linux takes the local ports of outgoing
// connections: so no client's port sits on a server's while it is down.
const (
	firstPort = 10000
	lastPort  = 32000
)

// freePorts picks n loopback ports that nothing listens on.
func freePorts(n int) ([]int, error) {
	ports := make([]int, 0, n)
	for range 100 * n {
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := net.Listen("tcp4", loopback(port))
		if err != nil {
			continue // taken, perhaps by ourselves a moment ago: listeners stay open until all are found
		}
		defer listener.Close()
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("no %d free ports between %d and %d", n, firstPort, lastPort)
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
