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

// socket is a non-blocking UDP socket outside Go's poller, which would wake a goroutine for each
// packet. Its system calls do not notify the scheduler. The caller must make sure that the socket is
// not closed during a call.
type socket struct {
	fd    int // -1 when closed
	ipv6  bool
	scope uint32     // interface index of a link-local address
	loop  *epollLoop // reads the socket

	to      netip.AddrPort // the address encoded in rawTo
	rawTo   unix.RawSockaddrAny
	rawSize uintptr
}

// bind binds a socket to an address. The error is unix.EADDRINUSE if the address is in use.
func bind(addr netip.AddrPort) (s *socket, err error) {
	s = &socket{ipv6: !addr.Addr().Is4()}
	family := unix.AF_INET
	if s.ipv6 {
		family = unix.AF_INET6
	}

	s.scope, err = interfaceIndex(addr.Addr().Zone())
	if err != nil {
		return nil, err
	}

	s.fd, err = unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP)
	if err != nil {
		return nil, fmt.Errorf("making a socket: %w", err)
	}

	if s.ipv6 {
		if err := unix.SetsockoptInt(s.fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1); err != nil {
			_ = s.close()
			return nil, fmt.Errorf("keeping a socket to IPv6: %w", err)
		}
	}

	s.setAddress(addr)
	_, _, errno := unix.RawSyscall(unix.SYS_BIND, uintptr(s.fd), uintptr(unsafe.Pointer(&s.rawTo)), s.rawSize)
	if errno != 0 {
		_ = s.close()
		return nil, fmt.Errorf("binding %v: %w", addr, errno)
	}

	return s, nil
}

func interfaceIndex(zone string) (uint32, error) {
	if zone == "" {
		return 0, nil
	}

	number, err := strconv.ParseUint(zone, 10, 32)
	if err == nil {
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

// setAddress encodes an address of the socket's family for the kernel.
func (s *socket) setAddress(to netip.AddrPort) {
	s.to = to
	if !s.ipv6 {
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

// writeDatagram sends one datagram. It drops the datagram if the kernel's buffer is full, because late media is
// useless.
func (s *socket) writeDatagram(b []byte, to netip.AddrPort) error {
	if to != s.to {
		if to.Addr().Is4() == s.ipv6 {
			return unix.EAFNOSUPPORT
		}
		s.setAddress(to)
	}

	_, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(s.fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)),
		0, uintptr(unsafe.Pointer(&s.rawTo)), s.rawSize)
	if errno != 0 {
		return errno
	}

	return nil
}

// datagramBuffer is the buffer for received datagrams.
type datagramBuffer struct {
	bytes [maxPacketBytes + 1]byte // one byte more detects truncation
	from  unix.RawSockaddrAny
	size  uint32 // of from
}

// readDatagram reads one datagram. The error is unix.EAGAIN if there is none.
func (s *socket) readDatagram(in *datagramBuffer) (b []byte, from netip.AddrPort, err error) {
	in.size = unix.SizeofSockaddrAny
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(s.fd), uintptr(unsafe.Pointer(&in.bytes)),
		uintptr(len(in.bytes)),
		0, uintptr(unsafe.Pointer(&in.from)), uintptr(unsafe.Pointer(&in.size)))
	if errno != 0 {
		return nil, from, errno
	}

	if s.ipv6 {
		raw := (*unix.RawSockaddrInet6)(unsafe.Pointer(&in.from))
		port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&raw.Port))[:])
		return in.bytes[:n], netip.AddrPortFrom(netip.AddrFrom16(raw.Addr).Unmap(), port), nil
	}

	raw := (*unix.RawSockaddrInet4)(unsafe.Pointer(&in.from))
	port := binary.BigEndian.Uint16((*[2]byte)(unsafe.Pointer(&raw.Port))[:])
	return in.bytes[:n], netip.AddrPortFrom(netip.AddrFrom4(raw.Addr), port), nil
}
