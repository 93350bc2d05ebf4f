package rtp_test

import (
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
	ports := newCounted(t, 25630, 25650, reg)
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
