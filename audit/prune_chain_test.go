package audit

import (
	"fmt"
	"testing"
	"time"

	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

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
