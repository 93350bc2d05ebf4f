package rtp_test

import (
	"bytes"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	pion "github.com/pion/rtp"
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/telephony/g711"
	"trunkline/telephony/rtp"
)

func TestRelay(t *testing.T) {
	a, b, portA, portB := twoPhones(t, 25000)
	ab := mapping(0, 0, 101, 96)
	rtp.Relay(portA, portB, ab, mapping(0, 0, 96, 101))

	send := func(pt uint8, sequence uint16, ssrc uint32) {
		a.send(portA, pion.Packet{Header: pion.Header{PayloadType: pt, SequenceNumber: sequence,
			Timestamp: 160 * uint32(sequence), SSRC: ssrc}, Payload: []byte("hello")})
	}

	send(0, 100, 1)
	first := b.hear()
	send(101, 102, 1) // one was lost on the way
	second := b.hear()
	send(0, 101, 1) // and came late
	late := b.hear()

	if string(first.Payload) != "hello" || first.PayloadType != 0 || second.PayloadType != 96 {
		t.Errorf("heard %v and %v", first, second)
	}
	if second.SequenceNumber != first.SequenceNumber+2 || late.SequenceNumber != first.SequenceNumber+1 ||
		second.Timestamp != first.Timestamp+320 {
		t.Errorf("gaps are not passed on: %v %v %v", first, second, late)
	}

	send(0, 40000, 2) // the phone began anew
	third := b.hear()
	if third.SequenceNumber != second.SequenceNumber+1 || third.SSRC != first.SSRC || !third.Marker ||
		int32(third.Timestamp-second.Timestamp) <= 0 {
		t.Errorf("a new source is not continued: %v after %v", third, second)
	}

	send(9, 40001, 2) // not negotiated
	b.send(portB, pion.Packet{Header: pion.Header{PayloadType: 96}, Payload: []byte{1, 10, 0, 160}})
	if back := a.hear(); back.PayloadType != 101 {
		t.Errorf("heard %v", back)
	}

	portA.SetReceiver(nil)
	portB.SetReceiver(nil)
	send(0, 40002, 2)

	if p, ok := b.listen(50 * time.Millisecond); ok {
		t.Errorf("heard %v after the relay had stopped", p)
	}
}

func TestRelayTurnsOneLawIntoTheOther(t *testing.T) {
	a, b, portA, portB := twoPhones(t, 25020)
	m := rtp.PayloadMapping{Clock: 8000}
	m.Convert(0, 8, g711.ULawToALaw())
	rtp.Relay(portA, portB, m, rtp.PayloadMapping{})
	a.send(portA, pion.Packet{Header: pion.Header{PayloadType: 0}, Payload: []byte{0x80, 0xFF, 0x00}})
	got := b.hear()
	if want := []byte{g711.ALaw().EncodeSample(32124), g711.ALaw().EncodeSample(0),
		g711.ALaw().EncodeSample(-32124)}; got.PayloadType != 8 || !bytes.Equal(got.Payload, want) {
		t.Errorf("heard %x as %d, want %x", got.Payload, got.PayloadType, want)
	}
}

// Packets that arrive while the reader is busy are read later.
func TestBursts(t *testing.T) {
	a, b, portA, portB := twoPhones(t, 25360)
	rtp.Relay(portA, portB, mapping(0, 0), mapping(0, 0))

	const packets = 100
	for i := range packets {
		a.send(portA, pion.Packet{Header: pion.Header{SequenceNumber: uint16(i)}, Payload: []byte("a")})
	}

	first := b.hear()
	for i := 1; i < packets; i++ {
		if got := b.hear(); got.SequenceNumber != first.SequenceNumber+uint16(i) {
			t.Fatalf("packet %d came as %d after %d", i, got.SequenceNumber, first.SequenceNumber)
		}
	}
}

func TestRelayOverIPv6(t *testing.T) {
	listen := netip.IPv6Loopback()
	ports, err := rtp.NewPorts(rtp.Config{Listen: listen, MinPort: 25400, MaxPort: 25410}, prometheus.NewRegistry(),
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	phones := make([]*phone, 2)
	for i := range phones {
		conn, err := net.ListenUDP("udp6", &net.UDPAddr{IP: listen.AsSlice()})
		if err != nil {
			t.Skip("no IPv6 here:", err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		phones[i] = &phone{t, conn}
	}

	a, b, portA, portB := phones[0], phones[1], open(t, ports), open(t, ports)
	portA.SetRemote(a.addr(), a.addr().Addr())
	portB.SetRemote(b.addr(), b.addr().Addr())
	rtp.Relay(portA, portB, mapping(0, 0), mapping(0, 0))
	a.send(portA, pion.Packet{Payload: []byte("six")})

	if got := b.hear(); string(got.Payload) != "six" {
		t.Errorf("heard %q", got.Payload)
	}

	portB.SetRemote(netip.MustParseAddrPort("127.0.0.1:4000"), loopback) // of the other family: not sent, and no harm
	a.send(portA, pion.Packet{Payload: []byte("lost")})
	portB.SetRemote(b.addr(), b.addr().Addr())
	b.send(portB, pion.Packet{Payload: []byte("back")})

	if got := a.hear(); string(got.Payload) != "back" {
		t.Errorf("heard %q", got.Payload)
	}
}

func TestHoldStopsSending(t *testing.T) {
	reg := prometheus.NewRegistry()
	a, b, portA, portB := twoPhonesOn(t, newPortsCountedIn(t, 25100, 25108, reg))
	rtp.Relay(portA, portB, mapping(0, 0), mapping(0, 0))
	portB.SetHold(true)
	a.send(portA, pion.Packet{Payload: []byte("held")})
	awaitDropped(t, reg, "held", 1)
	portB.SetHold(false)
	a.send(portA, pion.Packet{Header: pion.Header{SequenceNumber: 1}, Payload: []byte("again")})

	if got := b.hear(); string(got.Payload) != "again" {
		t.Errorf("heard %q", got.Payload)
	}
}

func TestRelayAllocatesNothing(t *testing.T) {
	a, b, portA, portB := twoPhones(t, 25260)
	rtp.Relay(portA, portB, mapping(0, 0), mapping(0, 0))
	packet := pion.Packet{Header: pion.Header{Version: 2}, Payload: make([]byte, 160)}
	raw, err := packet.Marshal()
	if err != nil {
		t.Fatal(err)
	}

	buffer := make([]byte, 2000)
	to := portA.Addr()
	allocated := testing.AllocsPerRun(200, func() {
		if _, err := a.conn.WriteToUDPAddrPort(raw, to); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.conn.ReadFromUDPAddrPort(buffer); err != nil {
			t.Fatal(err)
		}
	})
	if allocated > 0 {
		t.Errorf("%v allocations for each packet", allocated)
	}
}
