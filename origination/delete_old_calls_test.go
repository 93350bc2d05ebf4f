package origination

import (
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestOldCallsArePurged(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) {
		d := newTestNode(t, at).run()
		over, open := d.place("1002"), d.place("1002")
		d.platform.reportStates(over, Ended)
		within(t, "the call is at rest", func() bool { return d.calls.size() == 1 })
		mustSucceed(t, d.rows.deleteOld(t.Context(), time.Now().Add(-time.Minute)))
		d.storedState(over)
		mustSucceed(t, d.rows.deleteOld(t.Context(), time.Now().Add(time.Minute)))
		_, err := d.Get(t.Context(), d.alice(), over)
		wantKind(t, err, fault.KindNotFound)
		d.storedState(open)
	})
}
