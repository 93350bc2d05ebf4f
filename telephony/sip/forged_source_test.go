package sip

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/net/ipv4"

	"trunkline/internal/fault"
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

type emptyDirectory struct{}

func (emptyDirectory) SIPUser(context.Context, string, string) (User, error) {
	return User{}, fault.NotFound("no such user")
}

// newForged starts a server to which all of 127.0.0.0/8 is trusted, so that no
// rate limit holds forged datagrams back.
func newForged(t testing.TB, prepare func(*Server)) *Server {
	t.Helper()
	return startForged(t, Config{}, prometheus.NewRegistry(), prepare)
}

func startForged(t testing.TB, config Config, reg *prometheus.Registry, prepare func(*Server)) *Server {
	t.Helper()
	config.Settings = Settings{DigestAlgorithms: []string{"md5"}, Listen: "127.0.0.1:0",
		TrustedNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	config.Limits.MaxCalls = 4000
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	bindings, err := NewRedisBindings(client, "test:")
	if err != nil {
		t.Fatal(err)
	}

	s, err := New(config, emptyDirectory{}, bindings, reg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	prepare(s)

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Errorf("the server: %v", err)
		}
	})

	t.Cleanup(func() {
		cancel()
		running.Wait()
	})

	return s
}

func (emptyDirectory) Authenticate(context.Context, User, netip.Addr, func(HA1) bool) error {
	return fault.Unauthenticated("no such user")
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
			answers(f.t, s, probe)
		}
	}
	answers(f.t, s, probe)
}

// answers sends an OPTIONS from a known address until it is answered.
func answers(t testing.TB, s *Server, probe *net.UDPConn) {
	t.Helper()
	buffer := make([]byte, 2000)
	for attempt := range 50 {
		text := strings.ReplaceAll(forgedOptions, "branch=z9hG4bKf%d",
			fmt.Sprintf("branch=z9hG4bKp%d-%d;rport", time.Now().UnixNano(), attempt))
		if _, err := probe.WriteToUDPAddrPort([]byte(strings.ReplaceAll(text, "%d", "1")), s.Addr()); err != nil {
			t.Fatal(err)
		}

		_ = probe.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
		if _, err := probe.Read(buffer); err == nil {
			return
		}
	}

	t.Fatal("the server does not answer")
}

func newProbe(t testing.TB) *net.UDPConn {
	t.Helper()
	probe, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = probe.Close() })
	return probe
}

func TestForgedDatagramsLeaveMemoryFlat(t *testing.T) {
	const peers, count = 512, 20_000
	s := newForged(t, func(s *Server) {
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
	s := newForged(b, func(*Server) {})
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

func TestOnlyOurBranchesAreRecognised(t *testing.T) {
	b := branchSigner{key: [32]byte{1}}
	other := branchSigner{key: [32]byte{2}}
	for name, c := range map[string]struct {
		via  string
		want bool
	}{
		"ours":          {b.newBranch() + ";rport", true},
		"a forged one":  {"z9hG4bKabcdefghijklmnopqrstuvwx", false},
		"of another":    {other.newBranch(), false},
		"a short one":   {"z9hG4bKabc", false},
		"none":          {"", false},
		"of bad base64": {"z9hG4bK" + strings.Repeat("!", 24), false},
	} {
		if got := b.isOurs([]byte("SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP h;branch=" + c.via + "\r\n\r\n")); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
