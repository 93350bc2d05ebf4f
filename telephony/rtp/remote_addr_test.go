package rtp_test

import (
	"testing"
	"time"

	pion "github.com/pion/rtp"
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/telephony/rtp"
)

// A session description may have the address of a third party: media is sent there only after a packet
// from there, or if it is the host of the peer's signalling.
func TestMediaGoesToAnAddressOnlyAfterItWasHeardFrom(t *testing.T) {
	reg := prometheus.NewRegistry()
	ports := newCounted(t, 25400, 25420, reg)
	caller, victim := newPhone(t), newPhone(t)
	near, far := open(t, ports), open(t, ports)
	near.SetRemote(caller.addr(), loopback)
	far.SetRemote(victim.addr()) // named by the description alone
	rtp.Relay(near, far, mapping(0, 0), mapping(0, 0))

	for i := range 50 {
		caller.send(near, pion.Packet{Header: pion.Header{SequenceNumber: uint16(i)}, Payload: []byte("flood")})
	}

	awaitDropped(t, reg, "held", 50)
	if packet, ok := victim.listen(time.Millisecond); ok {
		t.Fatalf("an address that sent nothing got %q", packet.Payload)
	}

	victim.send(far, pion.Packet{Payload: []byte("here I am")})
	if got := caller.hear(); string(got.Payload) != "here I am" {
		t.Errorf("heard %q", got.Payload)
	}

	caller.send(near, pion.Packet{Header: pion.Header{SequenceNumber: 60}, Payload: []byte("hello")})
	if got := victim.hear(); string(got.Payload) != "hello" {
		t.Errorf("heard %q", got.Payload)
	}

	next := newPhone(t)
	far.SetRemote(next.addr()) // a later offer names another
	caller.send(near, pion.Packet{Header: pion.Header{SequenceNumber: 61}, Payload: []byte("flood")})

	if packet, ok := next.listen(100 * time.Millisecond); ok {
		t.Errorf("an address that sent nothing got %q", packet.Payload)
	}
}
