package rtp_test

import (
	"bytes"
	"testing"
	"time"

	pion "github.com/pion/rtp"

	"trunkline/telephony/rtp"
	"trunkline/telephony/srtp"
)

// srtpPhone is a phone with encrypted media.
type srtpPhone struct {
	*phone
	keys    srtp.Keys // the port's
	encrypt *srtp.Sender
	decrypt *srtp.Receiver
}

func newSRTPPhone(t *testing.T, suite srtp.Suite) *srtpPhone {
	t.Helper()
	p := &srtpPhone{phone: newPhone(t), keys: srtp.Keys{Send: srtp.NewKey(suite), Receive: srtp.NewKey(suite)}}
	var err error
	p.encrypt, err = srtp.NewSender(p.keys.Receive)
	if err != nil {
		t.Fatal(err)
	}

	p.decrypt, err = srtp.NewReceiver(p.keys.Send)
	if err != nil {
		t.Fatal(err)
	}

	return p
}

// sealed returns an encrypted packet.
func (p *srtpPhone) sealed(packet pion.Packet) []byte {
	p.t.Helper()
	packet.Version = 2
	plain, err := packet.Marshal()
	if err != nil {
		p.t.Fatal(err)
	}

	protected, err := p.encrypt.Protect(plain)
	if err != nil {
		p.t.Fatal(err)
	}

	return bytes.Clone(protected)
}

// hears waits for an encrypted packet and checks it.
func (p *srtpPhone) hears(payload string) {
	p.t.Helper()
	buffer := make([]byte, 2000)
	_ = p.conn.SetReadDeadline(time.Now().Add(patience))
	n, err := p.conn.Read(buffer)
	if err != nil {
		p.t.Fatal(err)
	}

	if bytes.Contains(buffer[:n], []byte(payload)) {
		p.t.Errorf("%q was sent in the clear", payload)
	}

	plain, err := p.decrypt.Unprotect(buffer[:n])
	if err != nil {
		p.t.Fatal(err)
	}

	var packet pion.Packet
	if err := packet.Unmarshal(plain); err != nil || string(packet.Payload) != payload {
		p.t.Errorf("heard %q, want %q (%v)", packet.Payload, payload, err)
	}
}

func TestARelayConnectsEncryptedAndPlainLegs(t *testing.T) {
	for i, suite := range srtp.Suites() {
		t.Run(string(suite), func(t *testing.T) {
			ports := newPorts(t, uint16(25500+20*i), uint16(25510+20*i))
			safe, plain := newSRTPPhone(t, suite), newPhone(t)
			near, far := open(t, ports), open(t, ports)
			if err := near.SetKeys(safe.keys); err != nil {
				t.Fatal(err)
			}

			near.SetRemote(safe.addr(), loopback)
			far.SetRemote(plain.addr(), loopback)
			rtp.Relay(near, far, mapping(0, 0), mapping(0, 0))

			for n := range uint16(3) {
				safe.raw(near, safe.sealed(
					pion.Packet{Header: pion.Header{SequenceNumber: n, SSRC: 9}, Payload: []byte("secret")}))
				if got := plain.hear(); string(got.Payload) != "secret" {
					t.Errorf("the plain leg heard %q", got.Payload)
				}

				plain.send(far, pion.Packet{Header: pion.Header{SequenceNumber: n}, Payload: []byte("answer")})
				safe.hears("answer")
			}

			other := newSRTPPhone(t, suite) // a call between two encrypted legs
			if err := far.SetKeys(other.keys); err != nil {
				t.Fatal(err)
			}

			far.SetRemote(other.addr(), loopback)
			safe.raw(near, safe.sealed(
				pion.Packet{Header: pion.Header{SequenceNumber: 10, SSRC: 9}, Payload: []byte("for the other")}))
			other.hears("for the other")

			if err := near.SetKeys(safe.keys); err != nil { // a later offer with the same keys
				t.Fatal(err)
			}

			other.raw(far, other.sealed(
				pion.Packet{Header: pion.Header{SequenceNumber: 1, SSRC: 5}, Payload: []byte("and back")}))
			safe.hears("and back")
		})
	}
}

func TestAnEncryptedLegTakesNothingForgedOrReplayed(t *testing.T) {
	ports := newPorts(t, 25600, 25610)
	safe, plain, attacker := newSRTPPhone(t, srtp.AES128CM), newPhone(t), newPhone(t)
	near, far := open(t, ports), open(t, ports)
	if err := near.SetKeys(safe.keys); err != nil {
		t.Fatal(err)
	}

	near.SetRemote(safe.addr(), loopback)
	far.SetRemote(plain.addr(), loopback)
	rtp.Relay(near, far, mapping(0, 0), mapping(0, 0))
	forged := safe.sealed(pion.Packet{Header: pion.Header{SequenceNumber: 1, SSRC: 9}, Payload: []byte("forged")})
	forged[len(forged)-1] ^= 1
	attacker.raw(near, forged) // from a host that may be the peer's, before the peer has sent
	attacker.send(near, pion.Packet{Payload: []byte("plain")})
	good := safe.sealed(pion.Packet{Header: pion.Header{SequenceNumber: 2, SSRC: 9}, Payload: []byte("good")})
	safe.raw(near, good)
	safe.raw(near, good)

	if got := plain.hear(); string(got.Payload) != "good" {
		t.Errorf("heard %q", got.Payload)
	}
	if packet, ok := plain.listen(100 * time.Millisecond); ok {
		t.Errorf("heard %q too", packet.Payload)
	}

	plain.send(far, pion.Packet{Payload: []byte("back")})
	safe.hears("back") // the attacker did not become the peer
}
