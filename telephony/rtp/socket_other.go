//go:build !linux

package rtp

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
)

// socket is a UDP socket with a goroutine that reads it.
type socket struct {
	conn *net.UDPConn
	done chan struct{} // closed when the reader has ended
}

// bind binds a socket to an address. The error is syscall.EADDRINUSE if the address is in use.
func bind(addr netip.AddrPort) (*socket, error) {
	network := "udp4"
	if !addr.Addr().Is4() {
		network = "udp6"
	}
	conn, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return nil, err
	}
	return &socket{conn: conn, done: make(chan struct{})}, nil
}

func (s *socket) close() error { return s.conn.Close() }

func (s *socket) writeDatagram(b []byte, to netip.AddrPort) error {
	_, err := s.conn.WriteToUDPAddrPort(b, to)
	return err
}

// readers starts and ends the ports' reader goroutines.
type readers struct{ log *slog.Logger }

// add starts reading a port.
func (r *readers) add(p *Port) error {
	go p.read()
	return nil
}

// remove closes a port's socket. When it returns, no further packet of the port is delivered.
func (r *readers) remove(p *Port) error {
	err := p.closeSocket()
	<-p.socket.done
	return err
}

func (p *Port) read() {
	defer close(p.socket.done)

	var (
		buffer [maxPacketBytes + 1]byte // one byte more detects truncation
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

		p.receiveMu.Lock()
		p.handleDatagram(&packet, buffer[:n], netip.AddrPortFrom(from.Addr().Unmap(), from.Port()))
		p.receiveMu.Unlock()
	}
}
