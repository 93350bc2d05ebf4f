package rtp_test

import (
	"net/netip"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bareRelay copies packets as they are from each odd phone to the even one
// beside it and back, and does nothing else.
func bareRelay(b *testing.B, phones []netip.AddrPort) (numbers []uint16, end func()) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		b.Fatal(err)
	}

	to := map[int32]*bareSocket{}
	var before *bareSocket
	for i, phone := range phones {
		fd, port := bareOpen(b)
		s := &bareSocket{fd: fd}
		s.phone = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: phone.Port()<<8 | phone.Port()>>8,
			Addr: phone.Addr().As4()}

		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd,
			&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			b.Fatal(err)
		}

		numbers = append(numbers, port)
		if i%2 == 1 {
			to[int32(fd)], to[int32(before.fd)] = before, s
		}

		before = s
	}

	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		b.Fatal(err)
	}

	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, stop,
		&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(stop)}); err != nil {
		b.Fatal(err)
	}

	var running sync.WaitGroup
	running.Go(func() { bareLoop(epoll, to) })
	return numbers, func() {
		_, _ = unix.Write(stop, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		running.Wait()
		for fd := range to {
			_ = unix.Close(int(fd))
		}
		_, _ = unix.Close(stop), unix.Close(epoll)
	}
}

type bareSocket struct {
	fd    int
	phone unix.RawSockaddrInet4
}

func bareOpen(b *testing.B) (fd int, port uint16) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		b.Fatal(err)
	}

	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback.As4()}); err != nil {
		b.Fatal(err)
	}

	at, err := unix.Getsockname(fd)
	if err != nil {
		b.Fatal(err)
	}

	return fd, uint16(at.(*unix.SockaddrInet4).Port)
}

// bareLoop ends with the first event of what is no relay's socket.
func bareLoop(epoll int, to map[int32]*bareSocket) {
	var (
		events [256]unix.EpollEvent
		packet [1500]byte
		from   unix.RawSockaddrInet4
	)

	for {
		n, _ := unix.EpollWait(epoll, events[:], -1)
		for _, e := range events[:max(n, 0)] {
			out := to[e.Fd]
			if out == nil {
				return
			}

			size := uint32(unix.SizeofSockaddrInet4)
			n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(e.Fd), uintptr(unsafe.Pointer(&packet)),
				uintptr(len(packet)),
				0, uintptr(unsafe.Pointer(&from)), uintptr(unsafe.Pointer(&size)))
			if errno == 0 {
				_, _, _ = unix.RawSyscall6(unix.SYS_SENDTO, uintptr(out.fd), uintptr(unsafe.Pointer(&packet)), n,
					0, uintptr(unsafe.Pointer(&out.phone)), unix.SizeofSockaddrInet4)
			}
		}
	}
}
