package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

// DialSocket returns a function for kafka.Config.Dial that connects to the broker that
// another process of this user runs on dir. If there is none, dialling returns an
// error that says so.
func DialSocket(dir string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		path, release, err := socketPath(dir)
		if err != nil {
			return nil, err
		}
		defer release()

		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", path)
		if err != nil {
			return nil, fmt.Errorf("no trunkline runs on %s: %w", dir, err)
		}

		return conn, nil
	}
}

func listenSocket(dir string) (net.Listener, error) {
	path, release, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	defer release()

	// This process has the lock, so an existing socket is left over from a kill.
	err = os.Remove(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing a stale socket: %w", err)
	}

	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("opening the broker's socket: %w", err)
	}

	l.SetUnlinkOnClose(false) // path may be temporary, see socketPath
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}

	return l, nil
}

// maxSocketPathBytes is the longest socket path, in bytes, that every supported
// system accepts.
const maxSocketPathBytes = 100

// socketPath returns a path of the socket in dir that is short enough for a socket
// address. If the real path is too long, the result refers to dir through an open file
// descriptor, until release.
func socketPath(dir string) (path string, release func(), err error) {
	path = filepath.Join(dir, socketName)
	if len(path) <= maxSocketPathBytes {
		return path, func() {}, nil
	}

	f, err := os.Open(dir)
	if err != nil {
		return "", nil, fmt.Errorf("opening the data directory: %w", err)
	}

	path = filepath.Join("/proc/self/fd", fmt.Sprint(f.Fd()), socketName)
	return path, func() { f.Close() }, nil // opened for reading: closing cannot lose data
}
