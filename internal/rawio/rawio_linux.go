package rawio

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Write writes as many bytes as fit in the socket buffer; unix.EAGAIN: it is full.
func Write(fd int, b []byte) (int, error) {
	return call(unix.SYS_SENDTO, fd, b, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// Read reads available bytes; unix.EAGAIN: there are none. 0 bytes mean the end of the
// stream.
func Read(fd int, b []byte) (int, error) {
	return call(unix.SYS_RECVFROM, fd, b, unix.MSG_DONTWAIT)
}

func call(number uintptr, fd int, b []byte, flags uintptr) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}

	for {
		n, _, errno := unix.RawSyscall6(number, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
			uintptr(len(b)), flags, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}
