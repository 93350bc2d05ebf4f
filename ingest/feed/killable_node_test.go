package feed

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event/state"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/sqldb"
)

// openTestStore opens a store on PostgreSQL, or with url "" on SQLite.
func openTestStore(t *testing.T, url string) *Store {
	t.Helper()
	cfg := sqldb.Config{Path: filepath.Join(t.TempDir(), "test.db")}
	if url != "" {
		cfg = sqldb.Config{URL: url}
	}

	db, err := sqldb.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = db.Close() })
	store, err := NewStore(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}

	return store
}

// testNode is a process with one feed. It can be killed: nothing that it does then has
// an effect.
type testNode struct {
	*runner
	service *Service
	kafka   *mortalKafka
	cancel  context.CancelFunc
	done    chan struct{}
}

// mortalKafka is the Kafka that a process sees until it is killed.
type mortalKafka struct {
	*fakeKafka
	mu              sync.Mutex
	dead            bool
	callsUntilDeath int           // the number of calls after which the answer does not come any more; -1: none
	gate            chan struct{} // Produce waits until it is closed; nil does not block
}

// pause makes Produce wait until resume.
func (k *mortalKafka) pause() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.gate = make(chan struct{})
}

func (k *mortalKafka) resume() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.gate != nil {
		close(k.gate)
		k.gate = nil
	}
}

func (k *mortalKafka) Produce(ctx context.Context, records ...kafka.Record) error {
	k.mu.Lock()
	gate := k.gate
	k.mu.Unlock()

	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}

	k.mu.Lock()
	defer k.mu.Unlock()

	if k.dead {
		return fault.Unavailable(nil, 0, "killed")
	}

	err := k.fakeKafka.Produce(ctx, records...)
	if k.callsUntilDeath == 0 {
		k.dead = true
		return fault.Unavailable(nil, 0, "killed")
	}

	k.callsUntilDeath--
	return err
}

// nodeFault is a fault that a testNode has.
type nodeFault string

const (
	diesEarly  nodeFault = "dies early"  // after one of its first answers from Kafka
	smallSpool nodeFault = "small spool" // its spool has little space
)

// startNode starts a node with a feed of p that sends to k.
func startNode(t *testing.T, name, dir string, store *Store, k *fakeKafka, p *fakePlatform, cfg Config,
	faults ...nodeFault) *testNode {
	t.Helper()
	return startNodeLog(t, name, dir, store, k, p, cfg, slog.New(slog.DiscardHandler), faults...)
}

func startNodeLog(t *testing.T, name, dir string, store *Store, k *fakeKafka, p *fakePlatform, cfg Config,
	log *slog.Logger, faults ...nodeFault) *testNode {
	t.Helper()
	n := newTestNode(t, name, dir, store, k, p, cfg, log, faults...)
	n.start(t)
	return n
}

// newTestNode returns a node that start starts.
func newTestNode(t *testing.T, name, dir string, store *Store, k *fakeKafka, p *fakePlatform, cfg Config,
	log *slog.Logger, faults ...nodeFault) *testNode {
	t.Helper()
	callsUntilDeath := -1
	if slices.Contains(faults, diesEarly) {
		callsUntilDeath = rand.IntN(3)
	}

	settings := DefaultSettings()
	if slices.Contains(faults, smallSpool) {
		settings.SpoolBytes = 16 << 10
	}

	cfg.Name, cfg.Kind = "pbx", KindFreeSWITCH
	cfg.Redundancy = max(cfg.Redundancy, 1)

	mortal := &mortalKafka{fakeKafka: k, callsUntilDeath: callsUntilDeath}
	service, err := NewService(ServiceConfig{Settings: settings, Feeds: []Config{cfg}, DataDir: dir, Node: name},
		ServiceDeps{
			Store: store, Directory: fakeDirectory{}, Platform: func(Config, Deps) (Platform, error) { return p, nil },
			Producer: mortal, LogReader: mortal, Metrics: prometheus.NewRegistry(), Log: log,
		})
	if err != nil {
		t.Fatal(err)
	}

	n := &testNode{runner: service.runners[0], service: service, kafka: mortal, done: make(chan struct{})}
	if cfg.Redundancy > 1 { // a slow machine must not end a lease or the order
		n.leaseTime, n.orderTimeout = 2*time.Minute, 2*time.Minute
	}

	return n
}

func (n *testNode) start(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel = cancel
	go func() {
		defer close(n.done)
		_ = n.service.Run(ctx)
	}()
	t.Cleanup(n.stop)
}

func (n *testNode) stop() {
	n.cancel()
	<-n.done
}

// kill ends the process without its shutdown: its pending work has no effect any
// more, and its lease stays.
func (n *testNode) kill() {
	n.kafka.mu.Lock()
	n.kafka.dead = true
	n.kafka.mu.Unlock()
	n.stop()
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within three minutes: %s", what)
		}
	}
}

// is returns a condition for eventually: the node's feed is in the state.
func (n *testNode) is(s State) func() bool {
	return func() bool { return n.currentStatus(time.Now()).State == s }
}

// awaitResync waits until the agents and calls, "kind id", have the states that a resync gives them, see
// fakeKafka.entry.
func awaitResync(t *testing.T, k *fakeKafka, want map[string]string) {
	t.Helper()
	eventually(t, fmt.Sprint("the state is ", want), func() bool {
		for key, text := range want {
			kind, id, _ := strings.Cut(key, " ")
			if k.entry(state.Kind(kind), id) != text {
				return false
			}
		}

		return true
	})
}

// wantAll waits until all events of the platform have become messages, each once.
func wantAll(t *testing.T, k *fakeKafka, n int) {
	t.Helper()
	numbers := func() (all []int) {
		for _, m := range k.read() {
			if m.Resync == "" {
				all = append(all, m.N)
			}
		}
		return all
	}

	eventually(t, fmt.Sprint("all ", n, " events are there"), func() bool { return len(numbers()) >= n })
	got := numbers()
	slices.Sort(got)

	if len(got) != n || got[0] != 1 || got[n-1] != n || len(slices.Compact(slices.Clone(got))) != n {
		t.Fatalf("%d events from %d to %d, want 1 to %d", len(got), got[0], got[len(got)-1], n)
	}
}
