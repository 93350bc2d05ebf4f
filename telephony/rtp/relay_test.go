package rtp_test

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pion "github.com/pion/rtp"
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/fault"
	"trunkline/telephony/g711"
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

// pair is two phones and their ports, not yet joined.
func pair(t *testing.T, first uint16) (a, b *phone, portA, portB *rtp.Port) {
	t.Helper()
	return pairOf(t, newPorts(t, first, first+8))
}

func pairOf(t *testing.T, ports *rtp.Ports) (a, b *phone, portA, portB *rtp.Port) {
	t.Helper()
	a, b = newPhone(t), newPhone(t)
	portA, portB = open(t, ports), open(t, ports)
	portA.SetRemote(a.addr(), loopback)
	portB.SetRemote(b.addr(), loopback)
	return a, b, portA, portB
}

func TestRelay(t *testing.T) {
	a, b, portA, portB := pair(t, 25000)
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
	a, b, portA, portB := pair(t, 25020)
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

func TestStrangersAreNotHeard(t *testing.T) {
	t.Run("once the phone has spoken, only its port", func(t *testing.T) {
		a, b, portA, portB := pair(t, 25040)
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
		a, b, portA, portB := pair(t, 25060)
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
		_, b, portA, portB := pairOf(t, newCounted(t, 25080, 25088, reg))
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

func TestHoldStopsSending(t *testing.T) {
	reg := prometheus.NewRegistry()
	a, b, portA, portB := pairOf(t, newCounted(t, 25100, 25108, reg))
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

func TestPortsAreBounded(t *testing.T) {
	ports := newPorts(t, 25201, 25205) // 25202 and 25204
	taken, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 25202})
	if err != nil {
		t.Fatal(err)
	}

	one := open(t, ports)
	if one.Addr().Port() != 25204 {
		t.Errorf("opened %v beside another program's", one.Addr())
	}
	if _, err := ports.Open(); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("a port more than there are: %v", err)
	}

	_ = taken.Close()
	two := open(t, ports)
	one.Close()
	one.Close()
	three := open(t, ports)
	if two.Addr().Port() != 25202 || three.Addr().Port() != 25204 {
		t.Errorf("opened %v and %v", two.Addr(), three.Addr())
	}
}

type counting struct {
	mu sync.Mutex
	n  byte
}

// Next is rtp.Source's: every tenth frame is silence.
func (c *counting) Next(buffer []byte) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	if c.n%10 == 0 {
		return 0
	}
	return copy(buffer, []byte{c.n, 1, 2})
}

func TestStreamKeepsItsPace(t *testing.T) {
	a, _, portA, _ := pair(t, 25220)
	stream := rtp.NewStream(portA, rtp.Format{PayloadType: 8, Clock: 8000, Frame: 20 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	start := time.Now()
	running.Go(func() { stream.Run(ctx, &counting{}) })
	var heard []pion.Packet

	for range 15 {
		heard = append(heard, a.hear())
	}

	passed := time.Since(start)
	cancel()

	running.Wait()
	if passed < 290*time.Millisecond {
		t.Errorf("15 frames and one of silence took %v", passed)
	}

	for i, p := range heard[1:] {
		before := heard[i]
		step, marker := uint32(160), false
		if p.Payload[0] == 11 {
			step, marker = 320, true
		}
		if more := p.Timestamp - before.Timestamp - step; more%160 == 0 && more < 160*50*60 && more > 0 {
			step, marker = step+more, true // a slow machine missed frames
		}
		if p.SequenceNumber != before.SequenceNumber+1 || p.Timestamp != before.Timestamp+step || p.Marker != marker ||
			p.SSRC != before.SSRC {
			t.Errorf("%v came after %v", p, before)
		}
	}
}

// timed records the time of each frame that it supplies; all are silence.
type timed []time.Duration

// Next is rtp.Source's.
func (s *timed) Next([]byte) int {
	*s = append(*s, time.Duration(time.Now().UnixNano()))
	return 0
}

func TestStreamTakesFramesAtTheirDeadlines(t *testing.T) {
	port := open(t, newPorts(t, 25230, 25234))
	synctest.Test(t, func(t *testing.T) {
		stream := rtp.NewStream(port, rtp.Format{PayloadType: 8, Clock: 8000, Frame: 20 * time.Millisecond})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second-1)
		defer cancel()

		var source timed
		stream.Run(ctx, &source)
		if len(source) != 500 {
			t.Fatalf("%d frames in 10 s", len(source))
		}

		for i := range source[1:] {
			if gap := source[i+1] - source[i]; gap != 20*time.Millisecond {
				t.Errorf("frame %d came %v after the one before", i+1, gap)
			}
		}
	})
}

func TestPressIsOnePress(t *testing.T) {
	a, _, portA, _ := pair(t, 25240)
	stream := rtp.NewStream(portA, rtp.Format{PayloadType: 0, Clock: 8000, Frame: 20 * time.Millisecond, Events: 101})
	if err := stream.Send([]byte("before")); err != nil {
		t.Fatal(err)
	}

	before := a.hear()
	if err := stream.SendDTMF(t.Context(), '#', 70*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := stream.Send([]byte("after")); err != nil {
		t.Fatal(err)
	}

	keypad := rtp.DTMFReceiver{Clock: 8000}
	var presses []rtp.DTMF
	packets := 0

	for p := a.hear(); p.PayloadType == 101; p = a.hear() {
		packets++
		if p.Timestamp != before.Timestamp+160 {
			t.Errorf("an event's timestamp is %d after audio at %d", p.Timestamp, before.Timestamp)
		}
		if press, ok := keypad.HandleEvent(&rtp.Packet{Timestamp: p.Timestamp, Payload: p.Payload}, time.Now()); ok {
			presses = append(presses, press)
		}
	}

	if want := []rtp.DTMF{{Digit: '#', Duration: 70 * time.Millisecond}}; !slices.Equal(presses, want) || packets != 6 {
		t.Errorf("%d packets made %v, want %v of 6", packets, presses, want)
	}
	if err := stream.SendDTMF(t.Context(), 'x', time.Second); fault.KindOf(err) != fault.KindUnsupported {
		t.Errorf("pressing an invalid key: %v", err)
	}
}

func TestRelayAllocatesNothing(t *testing.T) {
	a, b, portA, portB := pair(t, 25260)
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
