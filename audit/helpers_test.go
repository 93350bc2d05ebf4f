package audit

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/testdb"
)

// node is a Log with a pool and a logger of its own, like another process.
type node struct {
	*Log
	db     *sqldb.DB
	logged *testservice.Log
}

func newNode(t testing.TB, at sqldb.Config, change ...func(*Settings, *Deps)) *node {
	t.Helper()
	db := testdb.Open(t, at)
	n := &node{db: db, logged: &testservice.Log{}}
	settings := DefaultSettings()
	deps := Deps{DB: db, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(n.logged, nil))}

	for _, f := range change {
		f(&settings, &deps)
	}

	var err error
	n.Log, err = New(t.Context(), settings, deps)
	check(t, err)

	return n
}

// run runs the log until the test ends or stop is called.
func (n *node) run(t testing.TB) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error)
	go func() { done <- n.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		check(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

// loginEntry is an entry of a login by a user of account acme.
func (n *node) loginEntry(user string) Entry {
	ctx := WithCaller(context.Background(), Caller{"user:" + user, "203.0.113.7"})
	return n.Entry(ctx, Login, "acme", "api")
}

// recordAndChain records entries and chains them.
func (n *node) recordAndChain(t testing.TB, entries ...Entry) {
	t.Helper()
	check(t, n.Record(t.Context(), entries...))
	check(t, n.ChainPending(t.Context()))
}

func (n *node) exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	_, err := n.db.ExecContext(t.Context(), statement, args...)
	check(t, err)
}

func (n *node) verifyLog(t testing.TB) (Verification, error) {
	t.Helper()
	return n.Verify(t.Context(), KnownHead{}, func(int, int) {})
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until met returns true.
func waitFor(t testing.TB, what string, met func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if met() {
			return
		}
	}
	t.Fatalf("not in time: %s", what)
}
