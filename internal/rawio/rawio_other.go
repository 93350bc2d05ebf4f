//go:build !linux

package rawio

import "golang.org/x/sys/unix"

// Write writes what the socket can number; unix.EAGAIN: it has none.
func Write(fd int, b []byte) (int, error) { return retried(fd, b, unix.Write) }

// Read reads what has come; unix.EAGAIN: nothing. 0 bytes are the end.
func Read(fd int, b []byte) (int, error) { return retried(fd, b, unix.Read) }

func retried(fd int, b []byte, call func(int, []byte) (int, error)) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for {
		n, err := call(fd, b)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}
