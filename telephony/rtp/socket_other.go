//go:build !linux

package rtp

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
)

// socket is a UDP socket with a goroutine of its own that reads it.
type socket struct {
	conn *net.UDPConn
	done chan struct{} // the reader has ended
}

// bind makes a socket of an address. The error of one that is in use is
// syscall.EADDRINUSE.
func bind(at netip.AddrPort) (*socket, error) {
	network := "udp4"
	if !at.Addr().Is4() {
		network = "udp6"
	}
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	return &socket{conn: conn, done: make(chan struct{})}, nil
}

func (s *socket) close() error { return s.conn.Close() }

func (s *socket) send(b []byte, to netip.AddrPort) error {
	_, err := s.conn.WriteToUDPAddrPort(b, to)
	return err
}

// readers are the ports' goroutines.
type readers struct{ log *slog.Logger }

// add has a port read.
func (r *readers) add(p *Port) error {
	go p.read()
	return nil
}

// remove closes a port's socket. When it returns, no packet of the port is
// handed on any more.
func (r *readers) remove(p *Port) error {
	err := p.shut()
	<-p.socket.done
	return err
}

func (p *Port) read() {
	defer close(p.socket.done)
	var (
		buffer [maxPacket + 1]byte // one more, to tell what was cut off
		packet Packet
	)
	for {
		n, from, err := p.socket.conn.ReadFromUDPAddrPort(buffer[:])
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			p.ports.metrics.dropped[dropUnreadable].Inc()
			continue
		}
		p.receiving.Lock()
		p.take(&packet, buffer[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()))
		p.receiving.Unlock()
	}
}
