// Package freeport finds loopback ports for the servers of tests.
package freeport

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// The ports are below Linux's range for outgoing connections, so that a connection of
// another test cannot take a port before its server listens, or while the server
// restarts.
const (
	firstPort = 10000
	lastPort  = 32000
)

// Find returns n different ports that nothing listens on. No other call returns them before this
// process ends, also none in another process: the tests of several packages run at once.
func Find(n int) ([]int, error) {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("trunkline-test-ports-%d", os.Getuid()))
	// Not closed: its locks last until the process ends.
	reservations, err := unix.Open(path, unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}

	ports := make([]int, 0, n)
	for range 100 * n {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if slices.Contains(ports, port) || !reserve(reservations, port) {
			continue
		}

		listener, err := net.Listen("tcp4", loopbackAddress(port))
		if err != nil {
			continue // in use by a program that is not a test
		}

		_ = listener.Close()
		ports = append(ports, port)
		if len(ports) == n {
			return ports, nil
		}
	}

	return nil, fmt.Errorf("no %d free ports between %d and %d", n, firstPort, lastPort)
}

// reserve locks the byte of the file that stands for the port. A lock belongs to one opening of
// the file, so that two calls in one process also exclude each other.
func reserve(file, port int) bool {
	lock := &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: int64(port), Len: 1}
	return unix.FcntlFlock(uintptr(file), unix.F_OFD_SETLK, lock) == nil
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
