package rtp

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// socket is a UDP socket that Go's own poller does not know: that one wakes a
// goroutine for each packet. Its calls never wait, so they are made without
// telling the scheduler of them. Who uses one sees to it that it is not closed
// meanwhile.
type socket struct {
	fd    int // -1: closed
	six   bool
	scope uint32 // the interface of a link-local address
	loop  *loop  // that reads it

	to      netip.AddrPort // whose raw form is in rawTo
	rawTo   unix.RawSockaddrAny
	rawSize uintptr
}

// bind makes a socket of an address. The error of one that is in use is
// unix.EADDRINUSE.
func bind(at netip.AddrPort) (s *socket, err error) {
	s = &socket{six: !at.Addr().Is4()}
	family := unix.AF_INET
	if s.six {
		family = unix.AF_INET6
	}
	if s.scope, err = scopeOf(at.Addr().Zone()); err != nil {
		return nil, err
	}
	if s.fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP); err != nil {
		return nil, fmt.Errorf("making a socket: %w", err)
	}
	if s.six {
		if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1); err != nil {
			_ = s.close()
			return nil, fmt.Errorf("keeping a socket to IPv6: %w", err)
		}
	}
	s.aim(at)
	if _, _, errno := unix.RawSyscall(unix.SYS_BIND, uintptr(s.fd), uintptr(unsafe.Pointer(&s.rawTo)), s.rawSize); errno != 0 {
		_ = s.close()
		return nil, fmt.Errorf("binding %v: %w", at, errno)
	}
	return s, nil
}

func scopeOf(zone string) (uint32, error) {
	if zone == "" {
		return 0, nil
	}
	if number, err := strconv.ParseUint(zone, 10, 32); err == nil {
		return uint32(number), nil
	}
	link, err := net.InterfaceByName(zone)
	if err != nil {
		return 0, fmt.Errorf("looking for the interface %s: %w", zone, err)
	}
	return uint32(link.Index), nil
}

func (s *socket) close() error {
	fd := s.fd
	s.fd = -1
	return unix.Close(fd)
}

// aim writes an address of the socket's family as the kernel reads it.
func (s *socket) aim(to netip.AddrPort) {
	s.to = to
	if !s.six {
		raw := (*unix.RawSockaddrInet4)(unsafe.Pointer(&s.rawTo))
		*raw = unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: to.Addr().As4()}
		binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&raw.Port))[:], to.Port())
		s.rawSize = unix.SizeofSockaddrInet4
		return
	}
	raw := (*unix.RawSockaddrInet6)(unsafe.Pointer(&s.rawTo))
	*raw = unix.RawSockaddrInet6{Family: unix.AF_INET6, Addr: to.Addr().As16()}
	if to.Addr().IsLinkLocalUnicast() {
		raw.Scope_id = s.scope
	}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&raw.Port))[:], to.Port())
	s.rawSize = unix.SizeofSockaddrInet6
}

// send sends one datagram. When the kernel has no room for it, it is not sent:
// media that waits is worth nothing.
func (s *socket) send(b []byte, to netip.AddrPort) error {
	if to != s.to {
		if to.Addr().Is4() == s.six {
			return unix.EAFNOSUPPORT
		}
		s.aim(to)
	}
	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)),
		0, uintptr(unsafe.Pointer(&s.rawTo)), s.rawSize)
	if errno != 0 {
		return errno
	}
	return nil
}

// inbox is where datagrams are read into.
type inbox struct {
	buffer [maxPacket + 1]byte // one more, to tell what was cut off
	from   unix.RawSockaddrAny
	size   uint32
}

// receive reads one datagram; unix.EAGAIN when there is none.
func (s *socket) receive(in *inbox) (b []byte, from netip.AddrPort, err error) {
	in.size = unix.SizeofSockaddrAny
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&in.buffer)), uintptr(len(in.buffer)),
		0, uintptr(unsafe.Pointer(&in.from)), uintptr(unsafe.Pointer(&in.size)))
	if errno != 0 {
		return nil, from, errno
	}
	if s.six {
		raw := (*unix.RawSockaddrInet6)(unsafe.Pointer(&in.from))
		port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&raw.Port))[:])
		return in.buffer[:n], netip.AddrPortFrom(netip.AddrFrom16(raw.Addr).Unmap(), port), nil
	}
	raw := (*unix.RawSockaddrInet4)(unsafe.Pointer(&in.from))
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&raw.Port))[:])
	return in.buffer[:n], netip.AddrPortFrom(netip.AddrFrom4(raw.Addr), port), nil
}
