// Package audittest provides audit logs for tests of other packages.
package audittest

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/internal/report"
	"trunkline/internal/sqldb"
)

// New returns an audit log in db.
func New(t testing.TB, db *sqldb.DB) *audit.Log {
	t.Helper()
	l, err := audit.New(context.Background(), audit.DefaultSettings(), audit.Deps{
		DB: db, Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// CallerContext returns the test's context with a caller that has the actor.
func CallerContext(t testing.TB, actor string) context.Context {
	return audit.WithCaller(t.Context(), audit.Caller{Actor: actor, Address: "192.0.2.9"})
}

// Entries returns the account's entries as lines "action actor target outcome" that begin
// with the prefix, sorted.
func Entries(t testing.TB, l *audit.Log, account, prefix string) (lines []string) {
	t.Helper()
	if err := l.ChainPending(t.Context()); err != nil {
		t.Fatal(err)
	}

	page, err := l.List(t.Context(),
		audit.Filter{AccountID: account, End: time.Now().Add(time.Hour).Unix(), PageSize: report.MaxPage})
	if err != nil {
		t.Fatal(err)
	}

	for _, e := range page.Data {
		line := strings.Join([]string{string(e.Action), e.Actor, e.Target, e.Outcome}, " ")
		if strings.HasPrefix(line, prefix) {
			lines = append(lines, line)
		}
	}

	slices.Sort(lines)
	return lines
}

// Await waits until the account has n entries with the prefix, because Report stores
// entries asynchronously.
func Await(t testing.TB, l *audit.Log, account, prefix string, n int) []string {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		lines := Entries(t, l, account, prefix)
		if len(lines) == n {
			return lines
		}
		if time.Now().After(end) {
			t.Fatalf("account %s has entries %q, want %d", account, lines, n)
		}
	}
}
