//go:build !linux

package rawio

import "golang.org/x/sys/unix"

// Write writes as many bytes as fit in the socket buffer; unix.EAGAIN: it is full.
func Write(fd int, b []byte) (int, error) { return retryInterrupted(fd, b, unix.Write) }

// Read reads available bytes; unix.EAGAIN: there are none. 0 bytes mean the end of the
// stream.
func Read(fd int, b []byte) (int, error) { return retryInterrupted(fd, b, unix.Read) }

func retryInterrupted(fd int, b []byte, call func(int, []byte) (int, error)) (int, error) {
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
