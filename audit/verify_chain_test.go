package audit

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

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
