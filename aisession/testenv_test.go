package aisession_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
	"trunkline/internal/netguard"
	"trunkline/internal/testservice"
	"trunkline/telephony/audio"
	"trunkline/telephony/number"
)

// benchPeer has this program be the other process of BenchmarkSessions.
const benchPeer = "AISESSION_BENCH_PEER"

func TestMain(m *testing.M) {
	if os.Getenv(benchPeer) != "" {
		serveBenchPeer()
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(testservice.Goroutine))
}

// testEnv is a running service.
type testEnv struct {
	*aisession.Service
	t         *testing.T
	registry  *prometheus.Registry
	events    *events
	providers map[string]aiprovider.Provider
	allow     []netip.Prefix // that providers may be in
	redis     *miniredis.Miniredis
	stop      context.CancelFunc
	stopped   chan struct{}
}

// provider returns one of providers.
func (h *testEnv) provider(id string) (aiprovider.Provider, error) {
	if p, ok := h.providers[id]; ok {
		return p, nil
	}
	return aiprovider.Provider{}, fault.NotFound("AI provider not found")
}

// envProviders implements aisession.Providers.
type envProviders struct{ *testEnv }

func (p envProviders) Open(_ context.Context, id string) (aiprovider.Provider, error) {
	return p.provider(id)
}
func (p envProviders) Guard(aiprovider.Provider) netguard.Guard {
	return netguard.Guard{Allow: p.allow}
}

// events has the published events.
type events struct {
	mu   sync.Mutex
	sent []map[string]any
	fail bool // Publish returns an error
}

func (e *events) Publish(_ context.Context, account string, data []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()

	if e.fail {
		return errors.New("kafka is away")
	}

	var one map[string]any
	if err := json.Unmarshal(data, &one); err != nil || one["account_id"] != account {
		return errors.New("an event that is none")
	}

	e.sent = append(e.sent, one)
	return nil
}

func (e *events) all() []map[string]any {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]map[string]any(nil), e.sent...)
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// settingsWith returns the default settings with a change.
func settingsWith(change func(*aisession.Settings)) aisession.Settings {
	s := aisession.DefaultSettings()
	change(&s)
	return s
}

// startService starts a service that trusts the certificate of p.
func startService(t *testing.T, cfg aisession.Settings, p *provider, change ...func(*aisession.Deps)) *testEnv {
	t.Helper()
	h := &testEnv{t: t, registry: prometheus.NewRegistry(), events: &events{}, allow: loopback,
		stopped: make(chan struct{})}
	store := miniredis.RunT(t)
	h.redis = store

	// tests count goroutines, of which each connection has two
	client := redis.NewClient(&redis.Options{Addr: store.Addr(), PoolSize: 1})
	t.Cleanup(func() { _ = client.Close() })
	authorities := x509.NewCertPool()

	if p != nil {
		authorities.AddCert(p.server.Certificate())
	}

	plan, err := number.NewPlan(number.Settings{Country: "DE"})
	if err != nil {
		t.Fatal(err)
	}

	deps := aisession.Deps{
		Providers: envProviders{h}, Publisher: h.events,
		TLS:           &tls.Config{RootCAs: authorities, ServerName: "example.com"},
		Announcements: aisession.NewRedisAnnouncements(client, "test:"),
		Leases:        aisession.NewRedisSessionLeases(client, "test:"),
		FormatE164:    plan.E164,
		Metrics:       h.registry, Log: slog.New(slog.DiscardHandler),
	}

	for _, c := range change {
		c(&deps)
	}

	service, err := aisession.New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}

	h.Service = service
	ctx, cancel := context.WithCancel(context.Background())
	h.stop = cancel

	go func() {
		defer close(h.stopped)
		if err := service.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()

	t.Cleanup(func() {
		cancel()
		<-h.stopped
	})

	return h
}

// audioLost returns how many of a call's packets and of the provider's frames were dropped.
func (h *testEnv) audioLost() (n float64) {
	for _, what := range []string{"late_packet", "overrun_packet", "undecodable", "frame_to_provider"} {
		n += h.metric("trunkline_aisession_dropped_total", "kind", what)
	}
	return n
}

// metric is a counter's value; labels as name, value pairs.
func (h *testEnv) metric(name string, labels ...string) float64 {
	h.t.Helper()
	families, err := h.registry.Gather()
	if err != nil {
		h.t.Fatal(err)
	}

	for _, family := range families {
		if family.GetName() != name {
			continue
		}

	series:
		for _, m := range family.GetMetric() {
			for i := 0; i < len(labels); i += 2 {
				found := false
				for _, l := range m.GetLabel() {
					found = found || l.GetName() == labels[i] && l.GetValue() == labels[i+1]
				}

				if !found {
					continue series
				}
			}

			switch {
			case m.Counter != nil:
				return m.Counter.GetValue()
			case m.Gauge != nil:
				return m.Gauge.GetValue()
			case m.Histogram != nil:
				return float64(m.Histogram.GetSampleCount())
			}
		}
	}

	h.t.Fatalf("no metric %s %v", name, labels)
	return 0
}

// phone is a call whose caller sends a tone and stores the audio that it receives.
type phone struct {
	format  audio.Format
	encode  *audio.Transcoder
	session *aisession.Session

	mu        sync.Mutex
	audio     []byte // frames, as they came
	playedAt  []time.Time
	sizes     []int // of the frames
	pressed   []byte
	transfers []string
	refuse    bool // transfers
	endings   []aisession.Ending
	released  chan struct{}
}

func newPhone(t *testing.T, format audio.Format) *phone {
	t.Helper()
	encode, err := audio.NewTranscoder(audio.Format{Encoding: audio.PCM16, Rate: 48000}, format)
	if err != nil {
		t.Fatal(err)
	}
	return &phone{format: format, encode: encode, released: make(chan struct{})}
}

func (p *phone) Play(frame []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.audio = append(p.audio, frame...)
	p.sizes = append(p.sizes, len(frame))
	p.playedAt = append(p.playedAt, time.Now())
}

func (p *phone) SendDTMF(_ context.Context, digit byte, _ time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pressed = append(p.pressed, digit)
	return nil
}

func (p *phone) Transfer(_ context.Context, to string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.transfers = append(p.transfers, to)
	if p.refuse {
		return fault.New(fault.KindRefused, "nobody is there")
	}
	return nil
}

func (p *phone) Release(e aisession.Ending) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endings = append(p.endings, e)
	close(p.released)
}

func (p *phone) frames() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sizes)
}

func (p *phone) playedAudio() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]byte(nil), p.audio...)
}

// talk sends 20 ms of a tone each 20 ms until ctx ends.
func (p *phone) talk(ctx context.Context, hz float64) {
	raw := make([]byte, 0, 1920)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()

	var timestamp uint32
	for sample := 0; ; sample += 960 {
		raw = raw[:0]
		for i := range 960 {
			v := int16(9000 * math.Sin(2*math.Pi*hz*float64(sample+i)/48000))
			raw = append(raw, byte(v), byte(uint16(v)>>8))
		}

		_ = p.encode.Decode(raw)
		packet, _ := p.encode.EncodeFrame(nil)
		p.session.ReceiveAudio(timestamp, packet)
		timestamp += uint32(p.format.Samples(packet))

		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Formats of a call's audio.
var (
	ulaw = audio.Format{Encoding: audio.ULaw, Rate: 8000}
	opus = audio.Format{Encoding: audio.Opus, Rate: 48000}
)

// configOf returns the configuration of the account "demo" for p as its provider.
func configOf(p *provider, encoding string) aiprovider.Provider {
	format, _ := aiprotocol.FormatOf(encoding)
	return aiprovider.Provider{
		ID: "prov1", AccountID: "demo", Name: "test", Format: format, URL: p.url(),
		Headers:  map[string]string{"Authorization": "Bearer secret-of-the-account"},
		Fallback: aiprovider.FallbackHangup,
	}
}

// request returns the request of a session for a call in the format.
func request(p aiprovider.Provider, format audio.Format) aisession.Request {
	return aisession.Request{
		Provider: p, Ingress: aisession.IngressSIP, Call: aiprotocol.Call{CallID: "call-1"}, Caller: "+4930123456",
		Callee: "ai-prov1",
		Format: format, RTPTimestamps: true,
	}
}

// runningSession is a session under way with a caller that talks.
type runningSession struct {
	*aisession.Session
	phone       *phone
	done        chan aisession.Ending
	stopTalking context.CancelFunc
}

func (h *testEnv) start(r aisession.Request) *runningSession {
	h.t.Helper()
	session, err := h.Open(context.Background(), r)
	if err != nil {
		h.t.Fatal(err)
	}

	p := newPhone(h.t, r.Format)
	p.session = session
	ctx, quiet := context.WithCancel(context.Background())
	run := &runningSession{session, p, make(chan aisession.Ending, 1), quiet}

	talking := make(chan struct{})
	go func() {
		defer close(talking)
		p.talk(ctx, 440)
	}()

	go func() { run.done <- session.Run(context.Background(), p) }()
	h.t.Cleanup(func() {
		quiet()
		<-talking
	})

	return run
}

// end hangs up and waits.
func (r *runningSession) end(t *testing.T, cause string) aisession.Ending {
	t.Helper()
	r.CallEnded(cause)
	return r.wait(t)
}

func (r *runningSession) wait(t *testing.T) aisession.Ending {
	t.Helper()
	select {
	case e := <-r.done:
		r.done <- e
		r.stopTalking()
		if n := len(r.phone.endings); n > 1 || n == 0 && e.Reason != aisession.Transferred {
			t.Errorf("the call was released %d times", n)
		}
		return e
	case <-time.After(patience):
		t.Fatal("the session continues")
		return aisession.Ending{}
	}
}

func mustUUID(t *testing.T, text string) uuid.UUID {
	t.Helper()
	id, err := uuid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// echoAudio sends every frame of audio back.
func echoAudio(v *fakeConnection) {
	for sent := 0; ; {
		received := v.received()
		for ; sent < len(received); sent++ {
			if received[sent].event == "media" && v.sendAudio(received[sent].audio) != nil {
				return
			}
		}

		select {
		case <-v.done:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// samples is a tone as 16-bit PCM.
func samples(rate int, length time.Duration) []byte {
	var raw []byte
	for i := range int(length.Seconds() * float64(rate)) {
		raw = binary.LittleEndian.AppendUint16(raw,
			uint16(int16(9000*math.Sin(2*math.Pi*440*float64(i)/float64(rate)))))
	}
	return raw
}
