package sip

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
)

// udpSocket is the UDP socket that the stack reads and writes. It limits the effect of datagrams with
// forged source addresses:
//
//   - The stack stores each source address for as long as the socket is open. It therefore gets one
//     constant address, and udpSocket itself stores the newest addresses (recentPeers).
//   - A response is sent to an address that has not proven that it receives our messages only up to
//     three quarters of the bytes received from there (sourceLimiter.maySend).
type udpSocket struct {
	*net.UDPConn
	limiter    *sourceLimiter
	panicGuard *stackPanicGuard
	log        *slog.Logger

	// Used by the reading goroutine only.
	source netip.AddrPort // of the datagram that the stack is handling
	peers  recentPeers
}

// constantAddr is the address that the stack sees for all peers.
type constantAddr struct{}

func (constantAddr) Network() string { return "udp" }

func (constantAddr) String() string { return "0.0.0.0:0" }

var errUDPAddress = errors.New("sip: not a UDP address")

// ReadFrom implements net.PacketConn. It returns the next datagram that is within the limits and that
// the stack can handle.
func (u *udpSocket) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		n, from, err := u.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return 0, nil, err
		}
		if err != nil {
			u.log.Warn("reading a SIP datagram failed", "error", err)
			time.Sleep(time.Millisecond) // the error may repeat
			continue
		}

		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		if !u.limiter.admitDatagram(from, b[:n]) || isKeepAlive(b[:n]) || !u.panicGuard.checkDatagram(b[:n]) ||
			!u.peers.add(from) {
			continue
		}

		u.source = from
		return n, constantAddr{}, nil
	}
}

// WriteTo implements net.PacketConn. It drops responses above the limit for an unproven address.
func (u *udpSocket) WriteTo(b []byte, to net.Addr) (int, error) {
	udp, ok := to.(*net.UDPAddr)
	if !ok {
		return 0, errUDPAddress
	}

	remote := udp.AddrPort()
	remote = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
	if isResponse(b) && !u.limiter.maySend(remote, len(b)) {
		return len(b), nil
	}

	return u.WriteToUDPAddrPort(b, remote)
}

// setSource sets the source of a message to its real one and makes the stack find the socket by it. The
// stack calls it with each message before its transactions see the message.
func (u *udpSocket) setSource(m sipmsg.Message) {
	if m.Transport() == "UDP" {
		m.SetSource(u.source.String())
	}
}

// isResponse reports whether a message is a response; it looks at the first line only.
func isResponse(b []byte) bool { return bytes.HasPrefix(b, []byte("SIP/2.0 ")) }

// isKeepAlive reports whether data has only line breaks or zero bytes (RFC 5626, section 3.5.1).
func isKeepAlive(data []byte) bool { return len(bytes.Trim(data, "\r\n\x00")) == 0 }

// serveDatagrams runs the stack on the UDP socket until that is closed. A message on which the stack
// panics is lost.
func (t *transports) serveDatagrams(ctx context.Context) {
	for {
		panicked := t.panics.Do(placeDatagram, func() { t.logListenerError(t.transportLayer.ServeUDP(t.udp)) })
		if !panicked || ctx.Err() != nil {
			return
		}
	}
}
