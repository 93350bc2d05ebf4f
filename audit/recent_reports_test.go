package audit

import (
	"strings"
	"testing"
	"time"

	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

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
