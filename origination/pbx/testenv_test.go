package pbx_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/origination/pbx"
	"trunkline/telephony/localcall"
	"trunkline/telephony/rtp"
	"trunkline/telephony/sip"
	"trunkline/telephony/sip/siptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	account = "acme"
	domain  = "acme.example"
)

// directory has users 1001 to 1009 of one account, with their extension as the
// password.
type directory struct{}

func (directory) SIPUser(_ context.Context, host, username string) (sip.User, error) {
	if len(username) != 4 || username < "1001" || username > "1009" || host != domain && host != "127.0.0.1" {
		return sip.User{Domain: domain}, fault.NotFound("no such user")
	}
	return sip.User{
		AccountID: account, Domain: domain, UserID: "user-" + username, Extension: username,
	}, nil
}

func (directory) Authenticate(_ context.Context, user sip.User, _ netip.Addr, proves func(sip.HA1) bool) error {
	if user.UserID == "" || !proves(siptest.HA1(user.Extension, domain, user.Extension)) {
		return fault.Unauthenticated("wrong password")
	}
	return nil
}

// records stores the published records.
type records struct {
	mu     sync.Mutex
	rows   []event.CDR
	events []map[string]any
}

func (r *records) PublishCDR(_ context.Context, _ string, row event.CDR) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, row)
	return nil
}

func (r *records) PublishEvent(_ context.Context, _ string, data []byte) error {
	var e map[string]any
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	return nil
}

// testEnv has a running SIP server and driver, and their output.
type testEnv struct {
	t       testing.TB
	server  *sip.Server
	driver  *pbx.Driver
	ports   *rtp.Ports
	records *records
	reg     *prometheus.Registry
	steps   chan origination.Progress
	stop    func()
}

func newTestEnv(t testing.TB, change func(*pbx.Config), local localcall.Destination) *testEnv {
	t.Helper()
	return newTestEnvWithConfig(t,
		sip.Config{Settings: sip.Settings{DigestAlgorithms: []string{"md5"}, Listen: "127.0.0.1:0"},
			Limits: sip.Limits{PerAddress: 100_000, Requests: 100_000}}, change, local)
}

// newTestEnvAt listens where phones from Debian look for it; trusted may call
// as trunks do.
func newTestEnvAt(t testing.TB, listen string, trusted []netip.Prefix) *testEnv {
	t.Helper()
	return newTestEnvWithConfig(t,
		sip.Config{Settings: sip.Settings{DigestAlgorithms: []string{"md5"}, Listen: listen, TrustedNetworks: trusted}},
		nil, nil)
}

// newTestEnvWithPublisher publishes through f.
func newTestEnvWithPublisher(t testing.TB, f *failingRecords) *testEnv {
	t.Helper()
	config := sip.Config{Settings: sip.Settings{DigestAlgorithms: []string{"md5"}, Listen: "127.0.0.1:0"}}
	return buildTestEnv(t, config, origination.AdmissionConfig{}, nil, nil, f, &f.records)
}

// newLimitedTestEnv has limits of calls.
func newLimitedTestEnv(t testing.TB, limits origination.AdmissionConfig, change func(*pbx.Config),
	local localcall.Destination) *testEnv {
	t.Helper()
	r := &records{}
	config := sip.Config{
		Settings: sip.Settings{DigestAlgorithms: []string{"md5"}, Listen: "127.0.0.1:0"},
		Limits:   sip.Limits{PerAddress: 10_000, Requests: 10_000},
	}
	return buildTestEnv(t, config, limits, change, local, r, r)
}

func newTestEnvWithConfig(t testing.TB, config sip.Config, change func(*pbx.Config),
	local localcall.Destination) *testEnv {
	t.Helper()
	r := &records{}
	return buildTestEnv(t, config, origination.AdmissionConfig{}, change, local, r, r)
}

func buildTestEnv(
	t testing.TB, config sip.Config, limits origination.AdmissionConfig, change func(*pbx.Config),
	local localcall.Destination,
	publish pbx.RecordPublisher, kept *records,
) *testEnv {
	t.Helper()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	w := &testEnv{t: t, records: kept, reg: prometheus.NewRegistry(), steps: make(chan origination.Progress, 10_000)}
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	bindings, err := sip.NewRedisBindings(client, "test:")
	must(t, err)
	config.Limits.MaxCalls = 4000
	w.server, err = sip.New(config, directory{}, bindings, w.reg, log)
	must(t, err)
	w.ports, err = rtp.NewPorts(rtp.Config{Listen: netip.MustParseAddr("127.0.0.1"), MinPort: 21000, MaxPort: 24000},
		w.reg, log)
	must(t, err)
	settings := pbx.Config{Settings: pbx.DefaultSettings(), MediaServer: "node-1"}

	if change != nil {
		change(&settings)
	}

	admission := origination.NewAdmission(limits,
		origination.AdmissionDeps{Limiter: identity.NewMemoryLimiter(), Metrics: w.reg, Log: log})
	w.driver, err = pbx.New(settings, w.server, w.ports, directory{}, local, admission, publish, w.reg, log)
	must(t, err)
	w.server.Handle("", w.driver)
	w.server.Registrations.AddListener(w.driver)
	w.run()

	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run starts the parts; stop ends them as app would, the driver first.
func (w *testEnv) run() {
	driverCtx, stopDriver := context.WithCancel(context.Background())

	serverCtx, stopServer := context.WithCancel(context.Background())
	var driver, server sync.WaitGroup
	server.Go(func() {
		if err := w.server.Run(serverCtx); err != nil {
			w.t.Errorf("the server: %v", err)
		}
	})

	driver.Go(func() {
		if err := w.driver.Run(driverCtx); err != nil {
			w.t.Errorf("the driver: %v", err)
		}
	})

	driver.Go(func() {
		if err := w.driver.Follow(driverCtx, nil, func(p origination.Progress) { w.steps <- p }); err != nil {
			w.t.Errorf("following: %v", err)
		}
	})

	w.stop = sync.OnceFunc(func() {
		stopDriver()
		driver.Wait()
		stopServer()
		server.Wait()
		w.checkNothingOpen()
	})

	w.t.Cleanup(w.stop)
}

// checkNothingOpen checks that no port, leg or call is held.
func (w *testEnv) checkNothingOpen() {
	w.t.Helper()
	for _, name := range []string{"trunkline_rtp_ports_in_use", "trunkline_sip_legs",
		"trunkline_origination_sip_calls"} {
		if n := w.gauge(name); n != 0 {
			w.t.Errorf("%s is %v after all calls", name, n)
		}
	}
}

func (w *testEnv) gauge(name string) float64 {
	families, err := w.reg.Gather()
	must(w.t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	w.t.Errorf("there is no metric %s", name)
	return 0
}

// phone is a registered phone.
func (w *testEnv) phone(user string) *siptest.Phone {
	w.t.Helper()
	p := siptest.NewPhone(w.t, w.server.Addr().String(), user, domain, user)
	w.t.Cleanup(w.stop) // before the phone goes
	if r := p.Register(300); r.StatusCode != 200 {
		w.t.Fatalf("registering %s: %d", user, r.StatusCode)
	}
	return p
}

func (w *testEnv) originate(destination string) {
	w.t.Helper()
	_, err := w.driver.Originate(context.Background(), order("call-1", destination))
	must(w.t, err)
}

func order(id, destination string) origination.Order {
	return origination.Order{
		ID: id, InteractionID: "int-" + id, AccountID: account, Domain: domain, UserID: "user-1001", Extension: "1001",
		Destination: destination,
	}
}

// awaitNextState waits for the next step.
func (w *testEnv) awaitNextState(state origination.State) origination.Progress {
	w.t.Helper()
	select {
	case p := <-w.steps:
		if p.State != state {
			w.t.Fatalf("the call came to %s (%s), want %s", p.State, p.Cause, state)
		}
		return p
	case <-time.After(patience):
		w.t.Fatalf("the call did not come to %s", state)
	}

	return origination.Progress{}
}

func (w *testEnv) waitEnded(cause sip.Cause) {
	w.t.Helper()
	if p := w.awaitNextState(origination.Ended); p.Cause != string(cause) {
		w.t.Errorf("the call ended with %s, want %s", p.Cause, cause)
	}
}

// callRecords stops the server and returns its call records: the owner's legs, the loopback
// leg, and the destination's.
func (w *testEnv) callRecords() (owner, loopback, destination []event.CDR) {
	w.t.Helper()
	w.stop()
	w.records.mu.Lock()
	defer w.records.mu.Unlock()

	for _, row := range w.records.rows {
		if row.InteractionID != "int-call-1" || row.MediaServer != "node-1" || row.AccountID != account {
			w.t.Errorf("a record of another call: %+v", row)
		}

		switch {
		case row.OriginationCallID == "":
			owner = append(owner, row)
		case row.OriginationCallID != "call-1":
			w.t.Errorf("a record with a wrong origination_call_id: %+v", row)
		case row.CustomSIPHeaders == nil && row.PresenceID == "" && row.From == "1001":
			loopback = append(loopback, row)
		default:
			destination = append(destination, row)
		}
	}

	return owner, loopback, destination
}

// eventCounts are the types of the events of calls.
func (w *testEnv) eventCounts() map[string]int {
	w.records.mu.Lock()
	defer w.records.mu.Unlock()
	counted := map[string]int{}
	for _, e := range w.records.events {
		counted[e["type"].(string)]++
	}
	return counted
}

// patience limits the wait for a condition.
const patience = 3 * time.Minute

func eventually(t *testing.T, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never was so")
		}
	}
}
