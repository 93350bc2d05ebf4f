package audit

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/testdb"
)

func TestAnEntryIsARowAndALine(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		n := newNode(t, at)
		e := n.loginEntry("u1")
		n.recordAndChain(t, e)
		page, err := n.List(t.Context(), Filter{AccountID: "acme", End: time.Now().Unix() + 1})
		check(t, err)

		if len(page.Data) != 1 || page.Data[0].ID != e.ID || !page.Data[0].At.Equal(e.At.Time) ||
			page.Data[0].Actor != "user:u1" || page.Data[0].Address != "203.0.113.7" ||
			page.Data[0].Outcome != OutcomeOK {
			t.Errorf("listed %+v", page.Data)
		}

		want := fmt.Sprintf(
			"msg=audit id=%s at=%s account_id=acme actor=user:u1 address=203.0.113.7 action=login target=api outcome=ok\n",
			e.ID, e.At)
		if got := n.logged.String(); !strings.HasSuffix(got, want) || strings.Count(got, "msg=audit ") != 1 {
			t.Errorf("logged %q, want %q", got, want)
		}

		text, err := json.Marshal(page)
		check(t, err)
		if want := fmt.Sprintf(
			`{"data":[{"id":"%s","at":%s,"account_id":"acme","actor":"user:u1","address":"203.0.113.7","action":"login","target":"api","outcome":"ok"}],"page_size":50}`,
			e.ID, e.At); string(text) != want {
			t.Errorf("as JSON %s, want %s", text, want)
		}
	})
}

func TestAnEntryIsStoredWithItsChangeOrNotAtAll(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		n := newNode(t, at)
		refused := errors.New("refused")
		err := n.db.Tx(t.Context(), func(tx *sql.Tx) error {
			if err := n.Insert(t.Context(), tx, n.loginEntry("u")); err != nil {
				return err
			}
			return refused
		})
		if !errors.Is(err, refused) {
			t.Fatal(err)
		}

		check(t, n.ChainPending(t.Context()))
		if v, err := n.verifyLog(t); err != nil || v.Last != 0 {
			t.Errorf("a change that was rolled back is recorded: %+v, %v", v, err)
		}
	})
}

func TestWithoutTheTableRecordsAreRefusedAndReportsLogged(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		n := newNode(t, at)
		n.exec(t, `DROP TABLE audit_pending`)
		if err := n.Record(t.Context(), n.loginEntry("u")); err == nil {
			t.Error("recorded without a table")
		}
		if !strings.Contains(n.logged.String(), "outcome=ok stored=false") {
			t.Errorf("logged %s", n.logged)
		}

		e := n.loginEntry("u")
		e.Action, e.Outcome = LoginFailed, "wrong_password"
		n.Report(t.Context(), e)

		if !strings.Contains(n.logged.String(), "action=login_failed target=api outcome=wrong_password\n") {
			t.Errorf("logged %s", n.logged)
		}

		waitFor(t, "both counted", func() bool { return testutil.ToFloat64(n.metrics.failures) == 2 })
	})
}

func TestTextsAreBoundedAndPrintable(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		n := newNode(t, at)
		e := n.loginEntry("u\x00\xff\n\x1b[2J" + strings.Repeat("é", 300))
		n.recordAndChain(t, e)

		if v, err := n.verifyLog(t); err != nil || v.Last != 1 {
			t.Errorf("verified %+v, %v", v, err)
		}

		page, err := n.List(t.Context(), Filter{AccountID: "acme", End: time.Now().Unix() + 1})
		check(t, err)
		if got := page.Data[0].Actor; len(got) > maxTextBytes || strings.ContainsAny(got, "\x00\n\x1b") {
			t.Errorf("stored %q", got)
		}
	})
}

// BenchmarkRecord records from 64 callers at once while the chain follows.
func BenchmarkRecord(b *testing.B) {
	for name, at := range map[string]func() sqldb.Config{
		"sqlite":   func() sqldb.Config { return testdb.SQLite(b) },
		"postgres": func() sqldb.Config { return sqldb.Config{URL: testservice.Postgres(b)} },
	} {
		b.Run(name, func(b *testing.B) {
			n := newNode(b, at())
			stop := n.run(b)
			b.SetParallelism(32)

			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := n.Record(context.Background(), n.loginEntry("u")); err != nil {
						b.Error(err)
					}
				}
			})

			stop() // everything is in the chain
			b.StopTimer()
			if v, err := n.verifyLog(b); err != nil || v.Pending != 0 {
				b.Errorf("%+v, %v", v, err)
			}
		})
	}
}

// What cannot share a transaction with its entry is not done once its actor's entries are used
// up, and has its entry also where who asked has gone.
func TestNothingIsDoneWithoutItsEntry(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		n := newNode(t, at, func(s *Settings, _ *Deps) { s.UserEntriesPerMinute = 3 })
		now := time.Now()
		n.now = func() time.Time { return now }

		ctx, gone := context.WithCancel(WithCaller(t.Context(), Caller{"user:a", "203.0.113.7"}))
		done := 0
		act := func(fails error) error {
			entry := n.Entry(ctx, DeadLetterDiscard, "acme", "")
			return n.Act(ctx, &entry, func() error {
				done++
				entry.Target = fmt.Sprint("letter ", done)
				return fails
			})
		}

		check(t, act(nil))
		if err := act(errors.New("failed")); err == nil || err.Error() != "failed" {
			t.Errorf("got %v", err)
		}

		gone()
		check(t, act(nil))
		if err := act(nil); fault.KindOf(err) != fault.KindLimited || done != 3 {
			t.Errorf("beyond the rate: %v, %d done", err, done)
		}

		n.run(t)()
		var targets []string
		page, err := n.List(t.Context(), Filter{AccountID: "acme", End: now.Unix() + 60, PageSize: 10})
		check(t, err)

		for _, e := range page.Data {
			targets = append(targets, e.Target)
		}

		slices.Sort(targets)
		if !slices.Equal(targets, []string{"letter 1", "letter 3"}) {
			t.Errorf("entries of %q", targets)
		}
	})
}
