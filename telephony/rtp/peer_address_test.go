package rtp_test

import (
	"net/netip"
	"testing"
	"time"

	pion "github.com/pion/rtp"
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/telephony/rtp"
)

// numbered makes a packet of a source.
func numbered(ssrc uint32, sequence int) pion.Packet {
	return pion.Packet{Header: pion.Header{SSRC: ssrc, SequenceNumber: uint16(sequence)}, Payload: []byte("speech")}
}

func TestStrangersAreNotHeard(t *testing.T) {
	t.Run("once the phone has spoken, only its port", func(t *testing.T) {
		a, b, portA, portB := twoPhones(t, 25040)
		rtp.Relay(portA, portB, mapping(0, 0), mapping(0, 0))
		a.send(portA, pion.Packet{Payload: []byte("a")})
		b.hear()
		stranger := newPhone(t)
		stranger.send(portA, pion.Packet{Payload: []byte("x")})
		a.send(portA, pion.Packet{Payload: []byte("b")})

		if got := b.hear(); string(got.Payload) != "b" {
			t.Errorf("heard %q", got.Payload)
		}
	})

	t.Run("another port of the phone's host is believed first, and sent to", func(t *testing.T) {
		a, b, portA, portB := twoPhones(t, 25060)
		rtp.Relay(portA, portB, mapping(0, 0), mapping(0, 0))
		translated := newPhone(t)
		translated.raw(portA, []byte("not RTP"))
		translated.send(portA, pion.Packet{Payload: []byte("nat")})
		b.hear()
		b.send(portB, pion.Packet{Payload: []byte("back")})

		if got := translated.hear(); string(got.Payload) != "back" {
			t.Errorf("heard %q", got.Payload)
		}
		if _, ok := a.listen(20 * time.Millisecond); ok {
			t.Error("the address of the SDP still gets media")
		}
	})

	t.Run("another host is not", func(t *testing.T) {
		reg := prometheus.NewRegistry()
		_, b, portA, portB := twoPhonesOn(t, newPortsCountedIn(t, 25080, 25088, reg))
		rtp.Relay(portA, portB, mapping(0, 0), mapping(0, 0))
		portA.SetRemote(netip.MustParseAddrPort("192.0.2.1:4000"))
		stranger := newPhone(t)
		stranger.send(portA, pion.Packet{Payload: []byte("x")})
		awaitDropped(t, reg, "stranger", 1)
		portA.SetRemote(netip.MustParseAddrPort("192.0.2.1:4000"), loopback)
		stranger.send(portA, pion.Packet{Payload: []byte("y")})

		if got := b.hear(); string(got.Payload) != "y" {
			t.Errorf("the host of the signalling sent %q", got.Payload)
		}
	})
}

// A session description may have the address of a third party: media is sent there only after a packet
// from there, or if it is the host of the peer's signalling.
func TestMediaGoesToAnAddressOnlyAfterItWasHeardFrom(t *testing.T) {
	reg := prometheus.NewRegistry()
	ports := newPortsCountedIn(t, 25400, 25420, reg)
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

// Address translation gives a phone another port while it talks: its next packets come from there.
func TestMediaFollowsAPhoneWhosePortChanges(t *testing.T) {
	ports := newPorts(t, 25600, 25620)
	before, after, other := newPhone(t), newPhone(t), newPhone(t)
	near, far := relayed(t, ports, before, other)

	before.send(near, numbered(7, 1))
	other.hear()
	other.send(far, numbered(9, 1))
	before.hear()

	sequence := 2
	awaitHeard(t, other, func() { after.send(near, numbered(7, sequence)); sequence++ })

	other.send(far, numbered(9, 2))
	after.hear()
}

func TestAStrangerDoesNotTakeOverALiveStream(t *testing.T) {
	reg := prometheus.NewRegistry()
	ports := newPortsCountedIn(t, 25630, 25650, reg)
	phone, stranger, other := newPhone(t), newPhone(t), newPhone(t)
	near, far := relayed(t, ports, phone, other)

	for i := range 50 {
		phone.send(near, numbered(7, i))
		other.hear()
		stranger.send(near, numbered(8, i))
	}

	awaitDropped(t, reg, "stranger", 50)
	other.send(far, numbered(9, 1))
	phone.hear()
}

// A phone's new description names another port, and the last packets of the old one come after it.
func TestLatePacketsOfTheOldPortDoNotKeepOutTheNewOne(t *testing.T) {
	ports := newPorts(t, 25660, 25680)
	before, after, other := newPhone(t), newPhone(t), newPhone(t)
	near, far := relayed(t, ports, before, other)

	before.send(near, numbered(7, 1))
	other.hear()
	near.SetRemote(after.addr(), loopback)
	before.send(near, numbered(7, 2))
	other.hear()

	sequence := 3
	awaitHeard(t, other, func() { after.send(near, numbered(8, sequence)); sequence++ })

	other.send(far, numbered(9, 1))
	after.hear()
}

// relayed opens the ports of two phones and joins them.
func relayed(t *testing.T, ports *rtp.Ports, a, b *phone) (near, far *rtp.Port) {
	t.Helper()
	near, far = open(t, ports), open(t, ports)
	near.SetRemote(a.addr(), loopback)
	far.SetRemote(b.addr(), loopback)
	rtp.Relay(near, far, mapping(0, 0), mapping(0, 0))
	return near, far
}

// awaitHeard repeats send until the phone hears a packet.
func awaitHeard(t *testing.T, p *phone, send func()) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		send()
		if _, ok := p.listen(20 * time.Millisecond); ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was heard from the new address")
		}
	}
}
