package origination

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/audit/audittest"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// testNode is a node: a service over a real database, with a platform and a channel
// that do what they are told.
type testNode struct {
	*Service
	t        testing.TB
	at       sqldb.Config
	platform *platform
	channel  *channel
	users    *testUsers
	stop     func() // ends Run and waits for it
}

// newTestNode makes a node that does not run yet, without limits of calls.
func newTestNode(t testing.TB, at sqldb.Config, change ...func(*Config)) *testNode {
	t.Helper()
	return newLimitedTestNode(t, at, AdmissionConfig{}, change...)
}

// newLimitedTestNode is newTestNode with limits of calls.
func newLimitedTestNode(t testing.TB, at sqldb.Config, limits AdmissionConfig, change ...func(*Config)) *testNode {
	t.Helper()
	db := testdb.Open(t, at)
	d := &testNode{t: t, at: at, platform: newPlatform(), channel: &channel{}, users: newUsers(t, db), stop: func() {}}
	cfg := Config{Settings: DefaultSettings(), Node: t.Name() + time.Now().String()}
	cfg.UserPerMinute = 0

	for _, f := range change {
		f(&cfg)
	}

	var err error
	d.Service, err = New(t.Context(), cfg, Deps{
		DB: db, Driver: d.platform, Users: d.users, Admission: newTestAdmission(limits, nil, &auditLines{}),
		Publisher: d.channel, Audit: d.users.audited,
		Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	mustSucceed(t, err)

	return d
}

// run runs the node until the test's end, or stop.
func (d *testNode) run() *testNode {
	d.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()

	var once sync.Once
	d.stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				d.t.Error(err)
			}
		})
	}

	d.t.Cleanup(d.stop)
	within(d.t, "the node runs", func() bool { return d.running.Load() && d.platform.follows() })
	return d
}

// runWithoutLease runs the node without a sign of life, and never ends it well.
func (d *testNode) runWithoutLease() *testNode {
	ctx, cancel := context.WithCancel(context.Background())
	var jobs sync.WaitGroup
	jobs.Go(func() { _ = d.platform.Follow(ctx, nil, d.calls.report) })
	d.stop = func() { cancel(); jobs.Wait(); d.calls.close() }
	d.t.Cleanup(d.stop)
	d.running.Store(true)
	within(d.t, "the platform is followed", d.platform.follows)

	return d
}

func (d *testNode) alice() *identity.Principal {
	return &identity.Principal{UserID: d.users.alice, Username: "alice", AccountID: "demo", Role: identity.RoleUser}
}

func (d *testNode) admin() *identity.Principal {
	return &identity.Principal{UserID: d.users.admin, Username: "admin", AccountID: "demo", Role: identity.RoleAdmin}
}

// place places a call of alice's.
func (d *testNode) place(destination string) string {
	d.t.Helper()
	id, err := d.Originate(context.Background(), d.alice(), destination, "")
	mustSucceed(d.t, err)
	return id
}

func (d *testNode) storedState(callID string) State {
	d.t.Helper()
	c, err := d.Get(context.Background(), d.alice(), callID)
	mustSucceed(d.t, err)
	return c.State
}

func (d *testNode) awaitState(callID string, state State) {
	d.t.Helper()
	within(d.t, string(state), func() bool { return d.storedState(callID) == state })
}

// testUsers are those of the demo account, of a real identity service.
type testUsers struct {
	*identity.Directory
	audited      *audit.Log
	alice, admin string
	mu           sync.Mutex
	unreadable   error
	provisioned  []string
}

func newUsers(t testing.TB, db *sqldb.DB) *testUsers {
	t.Helper()
	cheap := identity.Config{Settings: identity.DefaultSettings(),
		Argon2: identity.Argon2{MemoryKiB: 64, Passes: 1, Lanes: 1}}
	ring, err := masterkey.Open(masterkey.Settings{Value: setting.Secret(strings.Repeat("0f1e2d3c", 8))})
	mustSucceed(t, err)
	audited := audittest.New(t, db)
	service, err := identity.New(t.Context(), cheap, db, ring, identity.NewMemoryLimiter(), audited,
		prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	mustSucceed(t, err)
	_, err = service.Directory.SeedDemo(t.Context(), "only for the tests 42")
	mustSucceed(t, err)
	u := &testUsers{Directory: service.Directory, audited: audited}
	all, err := service.Directory.ListUsers(t.Context(), "demo")
	mustSucceed(t, err)

	for _, one := range all {
		switch one.Username {
		case "alice":
			u.alice = one.ID
		case "admin":
			u.admin = one.ID
		}
	}

	return u
}

func (u *testUsers) FindUser(ctx context.Context, id string) (identity.User, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.unreadable != nil {
		return identity.User{}, u.unreadable
	}
	return u.Directory.FindUser(ctx, id)
}

func (u *testUsers) SetClickToCallID(ctx context.Context, userID, id string) error {
	u.mu.Lock()
	u.provisioned = append(u.provisioned, id)
	u.mu.Unlock()
	return u.Directory.SetClickToCallID(ctx, userID, id)
}

// platform is a Driver that records orders and reports scripted progress.
type platform struct {
	mu          sync.Mutex
	orders      []Order
	cancelled   []string
	open        []OpenCall
	report      func(Progress)
	onOriginate func(Order) (Placed, error)
	onCancel    func(callID string) error
}

func newPlatform() *platform {
	return &platform{
		onOriginate: func(o Order) (Placed, error) { return Placed{CallID: o.ID}, nil },
		onCancel:    func(string) error { return nil },
	}
}

func (p *platform) Originate(_ context.Context, order Order) (Placed, error) {
	p.mu.Lock()
	p.orders = append(p.orders, order)
	originate := p.onOriginate
	p.mu.Unlock()
	return originate(order)
}

func (p *platform) Cancel(_ context.Context, callID string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancelled = append(p.cancelled, callID)
	return p.onCancel(callID)
}

func (p *platform) Follow(ctx context.Context, open []OpenCall, report func(Progress)) error {
	p.mu.Lock()
	p.open, p.report = open, report
	p.mu.Unlock()
	<-ctx.Done()
	return nil
}

func (p *platform) follows() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.report != nil
}

func (p *platform) reportStates(callID string, states ...State) {
	for _, state := range states {
		p.report(Progress{CallID: callID, State: state, Cause: map[State]string{Ended: "NORMAL_CLEARING"}[state],
			At: time.Now()})
	}
}

func (p *platform) placedOrders() []Order {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Order(nil), p.orders...)
}

func (p *platform) cancels() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.cancelled...)
}

// adoptingPlatform is a platform whose calls outlive their node.
type adoptingPlatform struct {
	*platform
	adopted chan []OpenCall
}

func (a adoptingPlatform) Adopt(_ context.Context, open []OpenCall) []OpenCall {
	a.adopted <- open
	return nil
}

// channel stores the published events.
type channel struct {
	mu   sync.Mutex
	fail error
	sent []progressEvent
}

func (c *channel) Publish(_ context.Context, events ...Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.fail != nil {
		return c.fail
	}

	for _, one := range events {
		var p progressEvent
		if err := json.Unmarshal(one.Data, &p); err != nil {
			return err
		}
		c.sent = append(c.sent, p)
	}

	return nil
}

func (c *channel) failWith(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = err
}

// publishedStates returns the published states of a call.
func (c *channel) publishedStates(callID string) (states []State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.sent {
		if p.CallID == callID {
			states = append(states, p.State)
		}
	}
	return states
}

func mustSucceed(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantKind(t testing.TB, err error, kind fault.Kind) {
	t.Helper()
	if got := fault.KindOf(err); got != kind {
		t.Errorf("got %q (%v), want %q", got, err, kind)
	}
}

func within(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within three minutes: %s", what)
		}
	}
}

// refuseWith makes the platform refuse orders with an error; nil: it accepts them.
func (p *platform) refuseWith(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onOriginate = func(o Order) (Placed, error) { return Placed{CallID: o.ID}, err }
}

func singleNode(c *Config) { c.SingleNode = true }

func last(all []State, n int) []State { return all[max(0, len(all)-n):] }

func (d *testNode) db() *sqldb.DB { return d.rows.db }
