package audit

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
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

func TestNodesThatRecordAtOnceMakeOneChain(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		const writers, each = 20, 25
		nodes := []*node{newNode(t, at), newNode(t, at), newNode(t, at)}
		var stops []func()

		for _, n := range nodes {
			stops = append(stops, n.run(t))
		}

		var wg sync.WaitGroup
		for w := range writers {
			n := nodes[w%len(nodes)]
			wg.Go(func() {
				for i := range each {
					user := fmt.Sprintf("%d-%d", w, i)
					if i%5 == 0 {
						n.Report(t.Context(), n.loginEntry(user))
					} else if err := n.Record(t.Context(), n.loginEntry(user)); err != nil {
						t.Error(err)
					}
				}
			})
		}

		// Changes in serializable transactions, like those of the directory.
		wg.Go(func() {
			for i := range each {
				err := nodes[0].db.Tx(t.Context(), func(tx *sql.Tx) error {
					return nodes[0].Insert(t.Context(), tx, nodes[0].loginEntry(fmt.Sprint("tx-", i)))
				})
				if err != nil {
					t.Error(err)
				}
			}
		})

		wg.Wait()
		for _, stop := range stops {
			stop()
		}

		v, err := nodes[0].verifyLog(t)
		check(t, err)
		if v.First != 1 || v.Last != (writers+1)*each || v.Pending != 0 {
			t.Errorf("verified %+v, want %d entries", v, (writers+1)*each)
		}

		var ids int
		check(t, nodes[0].db.QueryRowContext(t.Context(), `SELECT COUNT(DISTINCT id) FROM audit_entries`).Scan(&ids))
		if ids != (writers+1)*each {
			t.Errorf("%d ids", ids)
		}
	})
}

func TestVerifyNamesTheFirstEntryThatWasChangedOrIsMissing(t *testing.T) {
	// replace changes the outcome of entry seq and recomputes its hash.
	replace := func(t *testing.T, n *node, seq int64) {
		entries, err := n.entriesAfter(t.Context(), seq-1, 1)
		check(t, err)
		entries[0].Outcome = "forged"
		n.exec(t, `UPDATE audit_entries SET outcome = 'forged', hash = $1 WHERE seq = $2`, entries[0].computeHash(),
			seq)
	}

	for name, c := range map[string]struct {
		attack func(t *testing.T, n *node)
		want   BrokenError
	}{
		"a field": {func(t *testing.T,
			n *node) {
			n.exec(t, `UPDATE audit_entries SET actor = 'user:other' WHERE seq = 4`)
		}, BrokenError{Seq: 4}},
		"a hash": {func(t *testing.T,
			n *node) {
			n.exec(t, `UPDATE audit_entries SET hash = 'x' WHERE seq = 4`)
		}, BrokenError{Seq: 4}},
		"a field and its hash":  {func(t *testing.T, n *node) { replace(t, n, 4) }, BrokenError{Seq: 4}},
		"the last and its hash": {func(t *testing.T, n *node) { replace(t, n, 10) }, BrokenError{Seq: 10}},
		"the first": {func(t *testing.T, n *node) { n.exec(t, `DELETE FROM audit_entries WHERE seq = 1`) },
			BrokenError{Seq: 1, Missing: true}},
		"one between": {func(t *testing.T, n *node) { n.exec(t, `DELETE FROM audit_entries WHERE seq = 6`) },
			BrokenError{Seq: 6, Missing: true}},
		"the last": {func(t *testing.T, n *node) { n.exec(t, `DELETE FROM audit_entries WHERE seq > 8`) },
			BrokenError{Seq: 9, Missing: true}},
		"all": {func(t *testing.T, n *node) { n.exec(t, `DELETE FROM audit_entries`) },
			BrokenError{Seq: 1, Missing: true}},
	} {
		t.Run(name, func(t *testing.T) {
			testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
				n := newNode(t, at)
				for i := range 10 {
					n.recordAndChain(t, n.loginEntry(fmt.Sprint(i)))
				}

				if v, err := n.verifyLog(t); err != nil || v.Last != 10 {
					t.Fatalf("unchanged: %+v, %v", v, err)
				}

				c.attack(t, n)
				_, err := n.verifyLog(t)
				var broken *BrokenError
				if !errors.As(err, &broken) || broken.Seq != c.want.Seq || broken.Missing != c.want.Missing ||
					!broken.Missing && broken.ID == "" {
					t.Errorf("verify says %v, want %v", err, &c.want)
				}
			})
		})
	}
}

// A person with write access to the tables can recompute the chain: an earlier head
// stored elsewhere reveals it.
func TestARewrittenChainDiffersFromAKnownHead(t *testing.T) {
	n := newNode(t, testdb.SQLite(t))
	n.recordAndChain(t, n.loginEntry("a"), n.loginEntry("b"), n.loginEntry("c"))
	before, err := n.verifyLog(t)
	check(t, err)
	entries, err := n.entriesAfter(t.Context(), 0, 10)
	check(t, err)
	prev := ""

	for i := range entries {
		c := &entries[i]
		c.Address, c.Prev = "192.0.2.1", prev
		prev = c.computeHash()
		n.exec(t, `UPDATE audit_entries SET address = $1, prev = $2, hash = $3 WHERE seq = $4`, c.Address, c.Prev, prev,
			c.Seq)
	}

	n.exec(t, `UPDATE audit_chain SET hash = $1`, prev)
	if _, err := n.verifyLog(t); err != nil {
		t.Fatalf("the rewrite is not whole: %v", err)
	}

	var broken *BrokenError
	if _, err := n.Verify(t.Context(), KnownHead{before.Last, before.Hash}, func(int, int) {}); !errors.As(err,
		&broken) || broken.Seq != 3 {
		t.Errorf("verified against the head before: %v", err)
	}

	n.exec(t, `DELETE FROM audit_entries WHERE seq = 3`)
	n.exec(t, `UPDATE audit_chain SET seq = 2, hash = (SELECT hash FROM audit_entries WHERE seq = 2)`)
	if _, err := n.Verify(t.Context(), KnownHead{before.Last, before.Hash}, func(int, int) {}); !errors.As(err,
		&broken) || broken.Seq != 3 || !broken.Missing {
		t.Errorf("cut chain verified against the head before: %v", err)
	}
}

func TestOldEntriesAreDeletedAndTheRestStillVerifies(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		now := time.Now()
		n := newNode(t, at, func(s *Settings, d *Deps) {
			s.Retention, d.Now = 24*time.Hour, func() time.Time { return now }
		})

		for i := range 6 {
			n.recordAndChain(t, n.loginEntry(fmt.Sprint(i)))
			now = now.Add(10 * time.Hour)
		}

		check(t, n.Prune(t.Context()))
		v, err := n.verifyLog(t)
		if err != nil || v.First != 5 || v.Last != 6 {
			t.Errorf("after pruning: %+v, %v", v, err)
		}

		now = now.Add(1000 * time.Hour)
		check(t, n.Prune(t.Context()))
		v, err = n.verifyLog(t)
		if err != nil || v.First != 7 || v.Last != 6 {
			t.Errorf("after pruning all: %+v, %v", v, err)
		}

		n.recordAndChain(t, n.loginEntry("again"))
		v, err = n.verifyLog(t)
		if err != nil || v.First != 7 || v.Last != 9 || v.Unrecorded != 0 { // with the two entries on the pruning
			t.Errorf("after the next entry: %+v, %v", v, err)
		}

		n.exec(t, `UPDATE audit_chain SET pruned_seq = 9, pruned_hash = 'x', seq = 9`)
		if _, err := n.verifyLog(t); err == nil {
			t.Error("a beginning that was moved is not noticed")
		}
	})
}

// fakeTopic collects published entries, and fails on request.
type fakeTopic struct {
	mu      sync.Mutex
	fail    error
	entries []ChainEntry
}

func (p *fakeTopic) Publish(_ context.Context, entries []ChainEntry) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fail != nil {
		return p.fail
	}
	p.entries = append(p.entries, entries...)
	return nil
}

func (p *fakeTopic) seqs() (all []int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.entries {
		all = append(all, e.Seq)
	}
	return all
}

func TestTheTopicHasTheChain(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		p := &fakeTopic{fail: errors.New("Kafka is away")}
		onTopic := func(_ *Settings, d *Deps) { d.Publisher = p }

		nodes := []*node{newNode(t, at, onTopic), newNode(t, at, onTopic)}
		for _, n := range nodes {
			n.run(t)
		}

		check(t, nodes[0].Record(t.Context(), nodes[0].loginEntry("a"), nodes[0].loginEntry("b")))
		waitFor(t, "the chain grows while Kafka is away", func() bool {
			h, err := nodes[0].readHead(t.Context())
			return err == nil && h.seq == 2
		})

		p.mu.Lock()
		p.fail = nil
		p.mu.Unlock()

		check(t, nodes[1].Record(t.Context(), nodes[1].loginEntry("c")))
		waitFor(t, "all on the topic", func() bool { return slices.Equal(p.seqs(), []int64{1, 2, 3}) })
	})
}

func TestPagesShowEveryEntryOnce(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		n := newNode(t, at)
		began := time.Now().Unix()
		var made []string

		for i := range 7 {
			e := n.loginEntry(fmt.Sprint("u", i%2))
			e.At = Moment{time.Unix(began, int64(i/2)*int64(time.Millisecond))} // several with the same time
			made = append(made, e.ID)
			n.recordAndChain(t, e)
		}

		other := n.loginEntry("u0")
		other.AccountID = "other"
		n.recordAndChain(t, other)
		f := Filter{AccountID: "acme", Start: began, End: began, PageSize: 2}
		var seen []string

		for {
			page, err := n.List(t.Context(), f)
			check(t, err)
			for _, e := range page.Data {
				seen = append(seen, e.ID)
			}

			f.StartKey = page.NextStartKey
			if f.StartKey == "" {
				break
			}
		}

		slices.Sort(made)
		slices.Sort(seen)
		if !slices.Equal(made, seen) {
			t.Errorf("pages show %v, want %v", seen, made)
		}

		for name, c := range map[string]struct {
			change func(*Filter)
			want   int
		}{
			"actor":        {func(f *Filter) { f.Actor = "user:u1" }, 3},
			"action":       {func(f *Filter) { f.Action = Logout }, 0},
			"both":         {func(f *Filter) { f.Actor, f.Action = "user:u0", Login }, 4},
			"later":        {func(f *Filter) { f.Start, f.End = began+1, began+9 }, 0},
			"unstorable":   {func(f *Filter) { f.Actor = "user:\xff" }, 0},
			"nobody knows": {func(f *Filter) { f.AccountID = "nobody" }, 0},
		} {
			f := Filter{AccountID: "acme", Start: began, End: began, PageSize: 100}
			c.change(&f)
			page, err := n.List(t.Context(), f)
			if err != nil || len(page.Data) != c.want {
				t.Errorf("%s: %d entries, %v; want %d", name, len(page.Data), err, c.want)
			}
		}

		f.StartKey = "bm8"
		if _, err := n.List(t.Context(), f); fault.KindOf(err) != fault.KindInvalid {
			t.Errorf("a wrong start key: %v", err)
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

func TestRepeatsAreReportedOnceAMinute(t *testing.T) {
	now := time.Now()
	n := newNode(t, testdb.SQLite(t), func(_ *Settings, d *Deps) { d.Now = func() time.Time { return now } })
	n.run(t)

	for range 100 {
		e := n.loginEntry("u")
		e.Action = LoginLocked
		n.ReportOnce(t.Context(), e)
	}

	other := n.loginEntry("u")
	other.Action, other.Address = LoginLocked, "203.0.113.8"
	n.ReportOnce(t.Context(), other)
	now = now.Add(time.Minute)
	other.ID = sqldb.NewID()
	n.ReportOnce(t.Context(), other)

	waitFor(t, "stored", func() bool {
		v, err := n.verifyLog(t)
		return err == nil && v.Last == 3
	})

	if got := strings.Count(n.logged.String(), "msg=audit "); got != 3 {
		t.Errorf("%d lines", got)
	}
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

func TestAManagementCommandsLineIsWrittenByTheNodeThatChainsIt(t *testing.T) {
	at := testdb.SQLite(t)
	command, server := newNode(t, at), newNode(t, at)
	ctx := WithCaller(t.Context(), Caller{Actor: "cli:root"})
	check(t, command.Record(ctx, command.Entry(ctx, UserCreate, "acme", "user:1")))
	check(t, server.ChainPending(t.Context()))
	if strings.Contains(command.logged.String(), "msg=audit") ||
		strings.Count(server.logged.String(), "msg=audit id=") != 1 {
		t.Errorf("the command logs %q, the server %q", command.logged, server.logged)
	}
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

// A head that was noted elsewhere shows that the trail was deleted, however its beginning was moved.
func TestADeletedTrailIsNoticedWithAHead(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		now := time.Now()

		n := newNode(t, at, func(s *Settings, d *Deps) {
			s.Retention, d.Now = 24*time.Hour, func() time.Time { return now }
		})
		verify := func(head Verification) error {
			_, err := n.Verify(t.Context(), KnownHead{head.Last, head.Hash}, func(int, int) {})
			return err
		}

		heads := make([]Verification, 0, 4)
		for i := range 4 {
			n.recordAndChain(t, n.loginEntry(fmt.Sprint(i)))
			v, err := n.verifyLog(t)
			check(t, err)
			heads = append(heads, v)
			now = now.Add(10 * time.Hour)
		}

		check(t, n.Prune(t.Context())) // the first two
		for i, head := range heads {
			if err := verify(head); err != nil {
				t.Errorf("head %d after its retention: %v", i+1, err)
			}
		}

		if err := verify(Verification{Last: 2, Hash: heads[0].Hash}); err == nil {
			t.Error("another hash of the last deleted entry is accepted")
		}

		var pruned *PrunedError
		n.exec(t, `DELETE FROM audit_pending`)
		n.exec(t, `DELETE FROM audit_entries`)
		n.exec(t, `UPDATE audit_chain SET pruned_seq = seq, pruned_hash = hash`)

		for i, head := range heads {
			if err := verify(head); !errors.As(err, &pruned) {
				t.Errorf("head %d of a deleted trail: %v", i+1, err)
			}
		}

		if v, err := n.verifyLog(t); err != nil || v.Unrecorded != 4 {
			t.Errorf("without a head: %+v %v", v, err)
		}

		// A forged entry on the pruning does not make entries older.
		n.recordAndChain(t, Entry{ID: "forged", At: Moment{now}, Action: Pruned, Outcome: OutcomeOK,
			Target: pruningRecord{1, 4, heads[3].Hash, now.Add(-10 * time.Hour).UnixMilli()}.target()})
		if err := verify(heads[3]); !errors.As(err, &pruned) {
			t.Errorf("pruned before its retention: %v", err)
		}
	})
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
