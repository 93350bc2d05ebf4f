package aisession_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/audio"
)

// BenchmarkSessions carries 100 calls for some seconds: RTP in and out over UDP,
// a WebSocket each to a provider that echoes. The phones and the provider are
// another process, so that the CPU counted is the service's.
func BenchmarkSessions(b *testing.B) {
	for _, encoding := range []string{"g711_ulaw", "pcm16"} {
		for _, scheme := range []string{"ws", "wss"} {
			b.Run(encoding+"/"+scheme, func(b *testing.B) { benchSessions(b, encoding, scheme) })
		}
	}
}

const (
	benchPeer    = "AISESSION_BENCH_PEER"
	benchCalls   = 100
	benchWarmup  = time.Second
	benchSeconds = 4
)

func benchSessions(b *testing.B, encoding, scheme string) {
	peer := exec.Command(os.Args[0])
	peer.Env = append(os.Environ(), benchPeer+"="+scheme)
	peer.Stderr = os.Stderr
	in, _ := peer.StdinPipe()
	out, _ := peer.StdoutPipe()
	if err := peer.Start(); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewReader(out)
	url, err := lines.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	service, err := aisession.New(aisession.Config{}, aisession.Deps{
		Providers: providers{&house{allow: loopback}}, Publisher: &events{}, Announcements: aisession.RedisAnnouncements{}, Seats: aisession.RedisSeats{},
		Authorities: &tls.Config{InsecureSkipVerify: true}, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = service.Run(ctx) })
	format, _ := aiprotocol.FormatOf(encoding)
	with := aiprovider.Provider{ID: "p", AccountID: "a", Format: format, URL: strings.TrimSpace(url)}
	for range benchCalls {
		call := newUDPCall(b)
		session, err := service.Open(ctx, aisession.Request{Provider: with, Way: aisession.WaySIP, Format: ulaw, Clocked: true})
		if err != nil {
			b.Fatal(err)
		}
		running.Go(func() { call.read(session) })
		running.Go(func() { session.Run(ctx, call); _ = call.conn.Close() })
		fmt.Fprintln(in, call.conn.LocalAddr())
	}
	fmt.Fprintln(in, "go")
	time.Sleep(benchWarmup)
	for b.Loop() {
		before := cpu()
		time.Sleep(benchSeconds * time.Second)
		used := cpu() - before
		b.ReportMetric(100*used.Seconds()/benchSeconds/benchCalls, "%core/session")
	}
	_ = in.Close()
	var got struct{ ToProvider, Gaps []float64 }
	if err := json.NewDecoder(lines).Decode(&got); err != nil {
		b.Fatal(err)
	}
	cancel()
	_ = peer.Wait()
	running.Wait()
	slices.Sort(got.Gaps)
	b.ReportMetric(got.Gaps[len(got.Gaps)/100], "ms-gap-p1")
	b.ReportMetric(got.Gaps[len(got.Gaps)*99/100], "ms-gap-p99")
	if encoding == "g711_ulaw" {
		slices.Sort(got.ToProvider)
		b.ReportMetric(got.ToProvider[len(got.ToProvider)/2], "ms-to-provider-p50")
		b.ReportMetric(got.ToProvider[len(got.ToProvider)*99/100], "ms-to-provider-p99")
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// udpCall is a call with the least RTP there is.
type udpCall struct {
	phone
	conn   *net.UDPConn
	to     net.Addr
	packet []byte
	n      uint32
}

func newUDPCall(b *testing.B) *udpCall {
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	return &udpCall{conn: conn, packet: make([]byte, 12, 200)}
}

func (c *udpCall) read(session *aisession.Session) {
	buffer := make([]byte, 1500)
	for {
		n, from, err := c.conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return
		}
		c.mu.Lock()
		if c.to == nil {
			c.to = net.UDPAddrFromAddrPort(from)
		}
		c.mu.Unlock()
		session.Heard(binary.BigEndian.Uint32(buffer[4:]), buffer[12:n])
	}
}

func (c *udpCall) Play(frame []byte) {
	c.mu.Lock()
	to, _ := c.to.(*net.UDPAddr)
	c.mu.Unlock()
	if to == nil {
		return
	}
	c.n++
	c.packet[0] = 0x80
	binary.BigEndian.PutUint16(c.packet[2:], uint16(c.n))
	binary.BigEndian.PutUint32(c.packet[4:], c.n*160)
	_, _ = c.conn.WriteToUDPAddrPort(append(c.packet[:12], frame...), to.AddrPort())
}

func (c *udpCall) Release(aisession.Ending) {}

// servePeer is the other process: phones and provider.
func servePeer() {
	peer := &benchPeerState{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(peer.echo))
	if os.Getenv(benchPeer) == "wss" {
		server.StartTLS()
	} else {
		server.Start()
	}
	fmt.Println("ws" + strings.TrimPrefix(server.URL, "http"))
	lines := bufio.NewScanner(os.Stdin)
	var phones []*net.UDPConn
	for lines.Scan() && lines.Text() != "go" {
		to, _ := net.ResolveUDPAddr("udp4", lines.Text())
		conn, err := net.DialUDP("udp4", nil, to)
		if err != nil {
			panic(err)
		}
		phones = append(phones, conn)
		go peer.listen(conn)
	}
	go peer.talk(phones)
	_, _ = io.Copy(io.Discard, os.Stdin)
	peer.mu.Lock()
	_ = json.NewEncoder(os.Stdout).Encode(map[string][]float64{"ToProvider": peer.delays, "Gaps": peer.gaps})
	os.Exit(0)
}

type benchPeerState struct {
	mu     sync.Mutex
	sent   [128 * 128]time.Time // of a packet, by its number
	delays []float64            // ms from phone to provider
	gaps   []float64            // ms between what a phone hears
}

// talk sends every phone's packet each 20 ms, spread over the time. Each holds a
// number of its own in its first samples, which mu-law carries unchanged.
func (p *benchPeerState) talk(phones []*net.UDPConn) {
	packet := make([]byte, 172)
	packet[0] = 0x80
	for i := range packet[12:] {
		packet[12+i] = 0x80 | byte(i)
	}
	next, number := time.Now(), 0
	for n := uint32(0); ; n++ {
		for i, conn := range phones {
			if i%5 == 0 {
				next = next.Add(audio.FrameDuration * 5 / time.Duration(len(phones)))
				time.Sleep(time.Until(next))
			}
			number = (number + 1) % len(p.sent)
			packet[12], packet[13] = 0x80|byte(number>>7), 0x80|byte(number)
			binary.BigEndian.PutUint16(packet[2:], uint16(n))
			binary.BigEndian.PutUint32(packet[4:], n*160)
			p.mu.Lock()
			p.sent[number] = time.Now()
			p.mu.Unlock()
			_, _ = conn.Write(packet)
		}
	}
}

func (p *benchPeerState) listen(conn *net.UDPConn) {
	buffer := make([]byte, 1500)
	var last time.Time
	for {
		if _, err := conn.Read(buffer); err != nil {
			return
		}
		now := time.Now()
		if !last.IsZero() {
			p.mu.Lock()
			p.gaps = append(p.gaps, now.Sub(last).Seconds()*1000)
			p.mu.Unlock()
		}
		last = now
	}
}

func (p *benchPeerState) echo(w http.ResponseWriter, r *http.Request) {
	conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	for {
		_, message, err := conn.ReadMessage()
		if err != nil {
			return
		}
		const head = `{"event":"media","media":{"payload":"`
		if !strings.HasPrefix(string(message[:min(len(message), len(head))]), head) {
			continue
		}
		now := time.Now()
		if audio, err := base64.StdEncoding.DecodeString(string(message[len(head) : len(head)+4])); err == nil && len(message) < 300 && audio[2] == 0x82 {
			number := int(audio[0]&0x7f)<<7 | int(audio[1]&0x7f)
			p.mu.Lock()
			p.delays = append(p.delays, now.Sub(p.sent[number]).Seconds()*1000)
			p.mu.Unlock()
		}
		if conn.WriteMessage(websocket.TextMessage, message) != nil {
			return
		}
	}
}
