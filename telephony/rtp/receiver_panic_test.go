package rtp_test

import (
	"testing"

	pion "github.com/pion/rtp"

	"trunkline/telephony/rtp"
)

// bomb panics on the first packet and hands over the others.
type bomb struct{ packets chan string }

func (b *bomb) Receive(p *rtp.Packet) {
	if p.Sequence == 1 {
		panic("the receiver failed")
	}
	b.packets <- string(p.Payload)
}

// All calls of a loop share its goroutine: a fault in one of them costs one packet.
func TestAReceiversPanicCostsOnePacket(t *testing.T) {
	ports := newPorts(t, 25700, 25710)
	p, port := newPhone(t), open(t, ports)
	port.SetRemote(p.addr(), loopback)
	b := &bomb{packets: make(chan string, 1)}
	port.SetReceiver(b)
	p.send(port, pion.Packet{Header: pion.Header{SequenceNumber: 1}, Payload: []byte("boom")})
	p.send(port, pion.Packet{Header: pion.Header{SequenceNumber: 2}, Payload: []byte("goes on")})

	if got := <-b.packets; got != "goes on" {
		t.Errorf("received %q", got)
	}
}
