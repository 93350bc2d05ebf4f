package freeswitch

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"trunkline/origination"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// journal is what was reported.
type journal struct {
	mu    sync.Mutex
	steps map[string][]origination.Progress
	more  chan struct{} // closed at the next report
}

func newJournal() *journal {
	return &journal{steps: make(map[string][]origination.Progress), more: make(chan struct{})}
}

func (j *journal) report(p origination.Progress) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.steps[p.CallID] = append(j.steps[p.CallID], p)
	close(j.more)
	j.more = make(chan struct{})
}

// states of the call, with the cause behind the last.
func (j *journal) states(id string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var states []string
	for _, p := range j.steps[id] {
		states = append(states, string(p.State))
		if p.Cause != "" {
			states = append(states, p.Cause)
		}
	}
	return states
}

// await waits until the call has come to the state.
func (j *journal) await(t *testing.T, id string, state origination.State) {
	t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		j.mu.Lock()
		there := slices.ContainsFunc(j.steps[id], func(p origination.Progress) bool { return p.State == state })
		more := j.more
		j.mu.Unlock()
		if there {
			return
		}
		select {
		case <-more:
		case <-timeout:
			t.Fatalf("%s did not come to %s: %v", id, state, j.states(id))
		}
	}
}

func newDriver(t *testing.T, cfg Config) *Driver {
	t.Helper()
	d, err := New(cfg, Deps{Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// follow runs Follow until stop, or the test's end, and waits for the first
// connection.
func follow(t *testing.T, d *Driver, open []origination.Open) (j *journal, stop func()) {
	t.Helper()
	j = newJournal()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := d.Follow(ctx, open, j.report); err != nil {
			t.Errorf("Follow: %v", err)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	connected(t, d)
	return j, stop
}

func connected(t *testing.T, d *Driver) {
	t.Helper()
	until(t, "the driver is connected", func() bool { return d.conn != nil }, d)
}

// until waits for a condition on the driver, which is looked at under its lock.
func until(t *testing.T, what string, holds func() bool, d *Driver) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		d.mu.Lock()
		ok := holds()
		d.mu.Unlock()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func noCalls(t *testing.T, d *Driver) {
	t.Helper()
	until(t, "no call is left", func() bool { return len(d.calls)+len(d.jobs) == 0 }, d)
}

func order(id string) origination.Order {
	return origination.Order{
		ID: id, InteractionID: "int-" + id, AccountID: "acc", Domain: "pbx.example", UserID: "u",
		Extension: "1001", Destination: "1002",
	}
}
