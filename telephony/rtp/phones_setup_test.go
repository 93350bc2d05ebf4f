package rtp_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	pion "github.com/pion/rtp"

	"trunkline/telephony/rtp"
)

// phone is a peer's socket.
type phone struct {
	t    *testing.T
	conn *net.UDPConn
}

func newPhone(t *testing.T) *phone {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &phone{t, conn}
}

func (p *phone) addr() netip.AddrPort { return p.conn.LocalAddr().(*net.UDPAddr).AddrPort() }

func (p *phone) send(to *rtp.Port, packet pion.Packet) {
	p.t.Helper()
	packet.Version = 2
	b, err := packet.Marshal()
	if err != nil {
		p.t.Fatal(err)
	}
	p.raw(to, b)
}

func (p *phone) raw(to *rtp.Port, b []byte) {
	p.t.Helper()
	if _, err := p.conn.WriteToUDPAddrPort(b, to.Addr()); err != nil {
		p.t.Fatal(err)
	}
}

// hear waits for a packet and returns it.
func (p *phone) hear() pion.Packet {
	p.t.Helper()
	packet, ok := p.listen(patience)
	if !ok {
		p.t.Fatal("no packet arrived")
	}
	return packet
}

func (p *phone) listen(limit time.Duration) (packet pion.Packet, ok bool) {
	p.t.Helper()
	buffer := make([]byte, 2000)
	_ = p.conn.SetReadDeadline(time.Now().Add(limit))
	n, err := p.conn.Read(buffer)
	if err != nil {
		return packet, false
	}

	if err := packet.Unmarshal(buffer[:n]); err != nil {
		p.t.Fatal(err)
	}

	return packet, true
}

func open(t *testing.T, ports *rtp.Ports) *rtp.Port {
	t.Helper()
	p, err := ports.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func mapping(pairs ...uint8) rtp.PayloadMapping {
	m := rtp.PayloadMapping{Clock: 8000}
	for i := 0; i < len(pairs); i += 2 {
		m.Pass(pairs[i], pairs[i+1])
	}
	return m
}

// twoPhones returns two phones and their ports, not yet joined.
func twoPhones(t *testing.T, first uint16) (a, b *phone, portA, portB *rtp.Port) {
	t.Helper()
	return twoPhonesOn(t, newPorts(t, first, first+8))
}

func twoPhonesOn(t *testing.T, ports *rtp.Ports) (a, b *phone, portA, portB *rtp.Port) {
	t.Helper()
	a, b = newPhone(t), newPhone(t)
	portA, portB = open(t, ports), open(t, ports)
	portA.SetRemote(a.addr(), loopback)
	portB.SetRemote(b.addr(), loopback)
	return a, b, portA, portB
}
