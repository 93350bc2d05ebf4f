package sip

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/ipv4"
)

// forger sends datagrams from any address of 127.0.0.0/8 by one socket.
type forger struct {
	t    testing.TB
	conn *ipv4.PacketConn
	port int
	to   net.Addr
	sent int
}

func newForger(t testing.TB, to netip.AddrPort) *forger {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &forger{t: t, conn: ipv4.NewPacketConn(conn), port: conn.LocalAddr().(*net.UDPAddr).Port,
		to: net.UDPAddrFromAddrPort(to)}
}

// send sends text, with %d for a number of its own, from the next address.
func (f *forger) send(text string) {
	f.sent++
	n := f.sent
	from := net.IPv4(127, byte(64+n>>16), byte(n>>8), byte(n))
	if _, err := f.conn.WriteTo([]byte(strings.ReplaceAll(text, "%d", fmt.Sprint(n))), &ipv4.ControlMessage{Src: from},
		f.to); err != nil {
		f.t.Fatalf("datagram %d: %v", n, err)
	}
}

const (
	forgedOptions = "OPTIONS sip:x SIP/2.0\r\nVia: SIP/2.0/UDP h;branch=z9hG4bKf%d\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:x>\r\nCall-ID: %d\r\nCSeq: 1 OPTIONS\r\n\r\n"
	forgedAnswer  = "SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP h;branch=%s\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:x>;tag=%%d\r\nCall-ID: %%d\r\nCSeq: 1 OPTIONS\r\n\r\n"
)

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// flood sends datagrams and waits for the server to keep up after each hundred:
// else the kernel drops them.
func (f *forger) flood(s *Server, probe *net.UDPConn, count int, texts ...string) {
	f.t.Helper()
	for i := range count {
		f.send(texts[i%len(texts)])
		if i%100 == 99 {
			awaitAnswer(f.t, s, probe)
		}
	}
	awaitAnswer(f.t, s, probe)
}

func TestForgedDatagramsLeaveMemoryFlat(t *testing.T) {
	const peers, count = 512, 20_000
	s := newTrustingServer(t, func(s *Server) {
		s.transports.udp.peers.maxAddresses, s.transports.udp.peers.minAge = peers, 10*time.Millisecond
	})
	f, probe := newForger(t, s.Addr()), newProbe(t)
	kinds := []string{forgedOptions, fmt.Sprintf(forgedAnswer, "z9hG4bKunknown"),
		fmt.Sprintf(forgedAnswer, s.transports.branches.newBranch())}
	f.flood(s, probe, 2000, kinds...)
	before := heap()
	f.flood(s, probe, count, kinds...)
	grown := int64(heap()) - int64(before)
	size := s.transports.transportLayer.Pool("udp").Size()
	t.Logf("%d forged datagrams: %d connections, heap grew by %d kB", count, size, grown>>10)

	if size > peers+2 { // and the listener under two names
		t.Errorf("the stack has %d connections, want at most %d", size, peers+2)
	}
	if grown > 4<<20 { // without the bound it is over 6 MB
		t.Errorf("the heap grew by %d kB", grown>>10)
	}
}

// BenchmarkForgedDatagrams measures the state that forged datagrams leave; run
// it with -benchtime=10000000x.
func BenchmarkForgedDatagrams(b *testing.B) {
	s := newTrustingServer(b, func(*Server) {})
	f, probe := newForger(b, s.Addr()), newProbe(b)
	kinds := []string{forgedOptions, fmt.Sprintf(forgedAnswer, "z9hG4bKunknown"),
		fmt.Sprintf(forgedAnswer, s.transports.branches.newBranch())}
	f.flood(s, probe, 2*maxPeers, kinds...)
	before := heap()
	b.ResetTimer()
	f.flood(s, probe, b.N, kinds...)
	b.StopTimer()
	b.ReportMetric(float64(before)/(1<<20), "MB-before")
	b.ReportMetric(float64(heap())/(1<<20), "MB-after")
	b.ReportMetric(float64(s.transports.transportLayer.Pool("udp").Size()), "connections")
}
