package sip_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	sipmsg "github.com/emiago/sipgo/sip"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"trunkline/internal/fault"
	"trunkline/internal/testservice"
	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction(
			"github.com/redis/go-redis/v9/maintnotifications.(*CircuitBreakerManager).cleanupLoop"),
		goleak.IgnoreAnyFunction(testservice.Goroutine))
}

const domain = "acme.example"

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// directory has users with names of four characters, which are their passwords. It
// limits the failures of a user, except where the user has authenticated before.
type directory struct {
	mu       sync.Mutex
	failures map[string]int
	known    map[string]bool // by user and address
}

func newDirectory() *directory {
	return &directory{failures: map[string]int{}, known: map[string]bool{}}
}

const maxFailures = 3

func (*directory) SIPUser(_ context.Context, host, username string) (sip.User, error) {
	if len(username) != 4 || host != domain && host != "127.0.0.1" {
		return sip.User{Domain: domain}, fault.NotFound("no such user")
	}
	return sip.User{AccountID: "acme", Domain: domain, UserID: "user-" + username, Extension: username}, nil
}

func (d *directory) Authenticate(_ context.Context, user sip.User, from netip.Addr, proves func(sip.HA1) bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()

	pair := user.Extension + "@" + from.String()
	if d.failures[user.Extension] >= maxFailures && !d.known[pair] {
		return fault.Limited(time.Minute, "too many failures")
	}
	if user.UserID == "" || !proves(siptest.HA1(user.Extension, domain, user.Extension)) {
		d.failures[user.Extension]++
		return fault.Unauthenticated("wrong password")
	}

	d.known[pair] = true
	return nil
}

func (d *directory) failed(user string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failures[user]
}

// recordedRegistrations records the notifications.
type recordedRegistrations struct {
	mu       sync.Mutex
	notified []string
}

func (d *recordedRegistrations) DeviceRegistered(b sip.Binding) { d.notify(b.Extension + " came") }

func (d *recordedRegistrations) DeviceUnregistered(b sip.Binding, reason sip.UnregisterReason) {
	d.notify(b.Extension + " " + string(reason))
}

func (d *recordedRegistrations) notify(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notified = append(d.notified, what)
}

func (d *recordedRegistrations) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.notified...)
}

type testEnv struct {
	t       testing.TB
	users   *directory
	server  *sip.Server
	reg     *prometheus.Registry
	devices *recordedRegistrations
	invites chan *sip.Invite // the calls that the server's handler gets
	stop    func()

	contexts func() int64 // those of the server that were not released
}

// ServeInvite is sip.Handler's: the test answers; the handler stays until the
// caller gives up or the server ends.
func (w *testEnv) ServeInvite(ctx context.Context, i *sip.Invite) {
	w.invites <- i
	<-ctx.Done()
}

func trustLoopback() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} }

func newTestEnv(t testing.TB, config sip.Config, bindings *sip.RedisBindings) *testEnv {
	t.Helper()
	if bindings == nil {
		bindings, _ = redisBindings(t)
	}

	config.Listen, config.Limits.MaxCalls = "127.0.0.1:0", cmp.Or(config.Limits.MaxCalls, 1000)
	if config.DigestAlgorithms == nil {
		config.DigestAlgorithms = sip.DefaultSettings().DigestAlgorithms
	}

	w := &testEnv{t: t, users: newDirectory(), reg: prometheus.NewRegistry(), devices: &recordedRegistrations{},
		invites: make(chan *sip.Invite, 100)}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	var err error
	w.server, err = sip.New(config, w.users, bindings, w.reg, log)
	must(t, err)
	w.contexts = sip.CountContexts(w.server)
	w.server.Handle("ai-", w)
	w.server.Registrations.AddListener(w.devices)

	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.server.Run(ctx); err != nil {
			t.Errorf("the server: %v", err)
		}
	})

	w.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
		if n := w.metric("trunkline_sip_legs", ""); n != 0 {
			t.Errorf("%v legs are left", n)
		}
	})

	t.Cleanup(w.stop)
	return w
}

// metric is a metric's value, of one label's value where it has labels.
func (w *testEnv) metric(name, label string) float64 {
	w.t.Helper()
	families, err := w.reg.Gather()
	must(w.t, err)
	total := 0.0

	for _, f := range families {
		if f.GetName() != name {
			continue
		}

		for _, m := range f.GetMetric() {
			matches := label == ""
			for _, l := range m.GetLabel() {
				matches = matches || l.GetValue() == label
			}

			if matches {
				total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}

	return total
}

func (w *testEnv) phone(user, password string) *siptest.Phone {
	w.t.Helper()
	p := siptest.NewPhone(w.t, w.server.Addr().String(), user, domain, password)
	w.t.Cleanup(w.stop) // before the phone goes
	return p
}

func (w *testEnv) invite() *sip.Invite {
	w.t.Helper()
	select {
	case i := <-w.invites:
		return i
	case <-time.After(patience):
		w.t.Fatal("no call came")
		return nil
	}
}

// patience limits the wait for a condition.
const patience = 3 * time.Minute

// eventually waits for something to be so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never was so: " + what)
		}
	}
}

// status checks the status of a response.
func status(t *testing.T, r *sipmsg.Response, want int) {
	t.Helper()
	if r.StatusCode != want {
		t.Errorf("got %d, want %d", r.StatusCode, want)
	}
}

// raw sends a request outside any dialog, from and to the phone's own address.
func raw(p *siptest.Phone, method, uri, headers string) *sipmsg.Response {
	aor := fmt.Sprintf("<sip:%s@%s>", p.User, p.Domain)
	rawCount++
	_, responses := p.Request(method, uri, aor+";tag=raw", aor, fmt.Sprint("raw-", rawCount), 1, headers, "")
	return p.WaitFinal(responses)
}

var rawCount int

const optionsRequest = "OPTIONS sip:x SIP/2.0\r\nVia: SIP/2.0/TCP 127.0.0.1:5;branch=z9hG4bK%d\r\nFrom: <sip:a@b>;tag=1\r\nTo: <sip:x>\r\nCall-ID: tcp\r\nCSeq: %d OPTIONS\r\nContent-Length: 0\r\n\r\n"
