package aisession_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/aiprotocol/dialect"
	"trunkline/telephony/audio"
	"trunkline/telephony/rtp"
)

// BenchmarkSessions carries 100 calls for some seconds: RTP in and out over the
// ports of telephony/rtp, a WebSocket each to a provider that echoes. The phones
// and the provider are another process, so that the CPU counted is the
// service's. The kernel's clock times what arrives there, so that the other
// process may be late. The floor is a bare loop of a timer and the same system
// calls in the service's place.
func BenchmarkSessions(b *testing.B) {
	b.Run("floor", func(b *testing.B) { benchWith(b, "g711_ulaw", "ws", startFloor) })
	for _, encoding := range []string{"g711_ulaw", "pcm16"} {
		for _, scheme := range []string{"ws", "wss"} {
			b.Run(encoding+"/"+scheme, func(b *testing.B) {
				benchWith(b, encoding, scheme,
					func(b *testing.B, url string, phones []netip.AddrPort) ([]netip.AddrPort, func()) {
						return startSessions(b, dialect.Trunkline, encoding, url, phones)
					})
			})
		}
	}
}

// BenchmarkDialects is BenchmarkSessions for each protocol of providers and its formats, in turn, three times, and
// reports the medians.
func BenchmarkDialects(b *testing.B) {
	costs, memory := make(map[string][]float64), make(map[string][]float64)
	var names []string
	for round := range 3 {
		for _, encoding := range []string{"g711_ulaw", "pcm16"} {
			for _, protocol := range dialect.Names() {
				if protocol == dialect.Twilio && encoding != "g711_ulaw" {
					continue // it has no other
				}

				name := protocol + "-" + encoding
				if round == 0 {
					names = append(names, name)
				}

				b.Run(fmt.Sprintf("%s/%d", name, round+1), func(b *testing.B) {
					start := func(b *testing.B, url string, phones []netip.AddrPort) ([]netip.AddrPort, func()) {
						return startSessions(b, protocol, encoding, url, phones)
					}
					cost, kilobytes := benchWith(b, encoding, "ws", start)
					costs[name] = append(costs[name], cost)
					memory[name] = append(memory[name], kilobytes)
				})
			}
		}
	}

	b.Run("median", func(b *testing.B) {
		for b.Loop() {
		}

		for _, name := range names {
			if len(costs[name]) > 0 { // -bench may have chosen others
				b.ReportMetric(median(costs[name]), "%core-"+name)
				b.ReportMetric(median(memory[name]), "KB-"+name)
			}
		}
	})
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

const (
	benchCalls   = 100
	benchWarmup  = time.Second
	benchSeconds = 4
)

// benchWith measures what start runs: it gets the provider's URL and the
// phones' addresses, and answers with its own, one for each phone. It returns the cost of a session in percent of
// a core, and the memory of one in the heap and in stacks, in KB.
func benchWith(b *testing.B, encoding, scheme string,
	start func(*testing.B, string, []netip.AddrPort) ([]netip.AddrPort, func())) (cost, kilobytes float64) {
	peer := exec.Command(os.Args[0])
	peer.Env = append(os.Environ(), benchPeer+"="+scheme)
	peer.Stderr = os.Stderr
	in, _ := peer.StdinPipe()
	out, _ := peer.StdoutPipe()

	if err := peer.Start(); err != nil {
		b.Fatal(err)
	}

	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}

	words := strings.Fields(first)
	var phones []netip.AddrPort
	for _, word := range words[1:] {
		phones = append(phones, netip.MustParseAddrPort(word))
	}

	empty := memoryInUse()
	ours, stop := start(b, words[0], phones)
	for _, addr := range ours {
		fmt.Fprintln(in, addr)
	}

	fmt.Fprintln(in, "go")
	time.Sleep(benchWarmup)
	for b.Loop() {
		before := cpu()
		time.Sleep(benchSeconds * time.Second)
		used := cpu() - before
		cost = 100 * used.Seconds() / benchSeconds / benchCalls
		b.ReportMetric(cost, "%core/session")
	}

	kilobytes = (memoryInUse() - empty) / 1024 / benchCalls
	b.ReportMetric(kilobytes, "KB/session")
	_ = in.Close()
	var got struct {
		ToProvider, Gaps []float64
		CPU              float64
	}
	if err := json.NewDecoder(lines).Decode(&got); err != nil {
		b.Fatal(err)
	}

	stop()
	_ = peer.Wait()
	report := func(name string, ms []float64, at ...int) {
		slices.Sort(ms)
		for _, percent := range at {
			b.ReportMetric(ms[min(len(ms)*percent/100, len(ms)-1)], fmt.Sprintf("ms-%s-p%d", name, percent))
		}
	}

	b.ReportMetric(got.CPU, "peer-cpu-s")
	report("gap", got.Gaps, 1, 99)
	if len(got.ToProvider) > 0 { // measured with the first encoding and protocol, over ws
		report("to-provider", got.ToProvider, 50, 95, 99)
	}

	return cost, kilobytes
}

// memoryInUse returns the bytes of live objects and of stacks.
func memoryInUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// startSessions runs the service with a session for each phone.
func startSessions(b *testing.B, protocol, encoding, url string,
	phones []netip.AddrPort) (ours []netip.AddrPort, stop func()) {
	settings := settingsWith(func(s *aisession.Settings) { s.MaxPerAccount = 0 }) // there is no Redis
	service, err := aisession.New(settings, aisession.Deps{
		Providers: envProviders{&testEnv{allow: loopback}}, Publisher: &events{},
		Announcements: &aisession.RedisAnnouncements{}, Leases: &aisession.RedisSessionLeases{},
		TLS: &tls.Config{InsecureSkipVerify: true}, Metrics: prometheus.NewRegistry(),
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}

	ports, err := rtp.NewPorts(rtp.Config{Listen: netip.MustParseAddr("127.0.0.1"), MinPort: 42000, MaxPort: 43000},
		prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = service.Run(ctx) })
	format, _ := aiprotocol.FormatOf(encoding)
	with := aiprovider.Provider{ID: "p", AccountID: "a", Format: format, URL: url, Protocol: protocol}

	for _, phone := range phones {
		port, err := ports.Open()
		if err != nil {
			b.Fatal(err)
		}

		session, err := service.Open(ctx,
			aisession.Request{Provider: with, Ingress: aisession.IngressSIP, Format: ulaw, RTPTimestamps: true})
		if err != nil {
			b.Fatal(err)
		}

		port.SetRemote(phone, phone.Addr())
		port.SetReceiver(receiver{session})
		ours = append(ours, port.Addr())

		running.Go(func() {
			defer port.Close()
			session.Run(ctx, &leg{stream: rtp.NewStream(port, rtp.Format{Clock: 8000, Frame: audio.FrameDuration})})
		})
	}

	return ours, func() { cancel(); running.Wait() }
}

type receiver struct{ session *aisession.Session }

func (r receiver) Receive(p *rtp.Packet) { r.session.ReceiveAudio(p.Timestamp, p.Payload) }

// leg is a call by RTP alone.
type leg struct {
	phone
	stream *rtp.Stream
}

func (l *leg) Play(frame []byte)        { _ = l.stream.Send(frame) }
func (l *leg) Release(aisession.Ending) {}
