package sipcall

import (
	"encoding/binary"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
)

// TestAKeyIsAsLongByTheClockOfItsEvents: a peer may offer Opus, whose clock is 48 kHz, with events of 8 kHz.
func TestAKeyIsAsLongByTheClockOfItsEvents(t *testing.T) {
	loopback := netip.MustParseAddr("127.0.0.1")
	ports, err := rtp.NewPorts(rtp.Config{Listen: loopback, MinPort: 25400, MaxPort: 25440}, prometheus.NewRegistry(),
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	port, err := ports.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()

	peer, err := net.ListenUDP("udp4", &net.UDPAddr{IP: loopback.AsSlice()})
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()

	for _, clock := range []uint32{8000, 48000} {
		events := sip.TelephoneEvent(clock)
		m := &media{port: port, allowedHosts: func(a netip.Addr) []netip.Addr { return []netip.Addr{a} }}
		err = m.apply(sip.NegotiatedMedia{
			Codecs:         []sip.NegotiatedCodec{{Codec: sip.Opus(), SendType: 107, ReceiveType: 107}},
			TelephoneEvent: sip.NegotiatedCodec{Codec: events, SendType: 101, ReceiveType: 101},
			RemoteAddr:     peer.LocalAddr().(*net.UDPAddr).AddrPort(), PeerSends: true, PeerReceives: true,
		})
		if err != nil {
			t.Fatal(err)
		}

		if err := m.parameters.Load().stream.SendDTMF(t.Context(), '5', 160*time.Millisecond); err != nil {
			t.Fatal(err)
		}

		if got, want := lengthOfKey(t, peer), clock*160/1000; got != want {
			t.Errorf("events of %d Hz: a key of 160 ms takes %d ticks, want %d", clock, got, want)
		}
	}
}

// lengthOfKey reads the packets of a key to the three of its end, and returns their duration in ticks.
func lengthOfKey(t *testing.T, peer *net.UDPConn) (ticks uint32) {
	t.Helper()
	const header, endBit = 12, 0x80
	if err := peer.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}

	buffer := make([]byte, 1500)
	for ends := 0; ends < 3; {
		n, err := peer.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}

		if n >= header+4 && buffer[header+1]&endBit != 0 {
			ends++
			ticks = uint32(binary.BigEndian.Uint16(buffer[header+2:]))
		}
	}

	return ticks
}
