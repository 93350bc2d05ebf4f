//go:build !linux

package fanout

import "syscall"

// writeNow writes what the socket has room for and never waits.
func writeNow(fd int, b []byte) (int, error) {
	for {
		n, err := syscall.Write(fd, b)
		switch err {
		case syscall.EINTR:
		case syscall.EAGAIN:
			return 0, nil
		default:
			return max(n, 0), err
		}
	}
}
