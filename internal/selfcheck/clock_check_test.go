package selfcheck

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestClocksThatDisagreeAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead time.Duration
		c, logged := newTestChecker(Dependency{Name: "it", Ping: func(context.Context) error { return nil },
			Clock: func(context.Context) (time.Duration, error) { return ahead, nil }})

		for _, step := range []struct {
			ahead time.Duration
			lines int
		}{{0, 0}, {skewLimit - 1, 0}, {-skewLimit, 1}, {time.Hour, 1}, {0, 2}} {
			ahead = step.ahead
			c.check(t.Context())
			if n := strings.Count(logged.String(), "\n"); n != step.lines {
				t.Errorf("%v ahead, %d lines:\n%s", step.ahead, n, logged)
			}
			if got := testutil.ToFloat64(c.metrics.skew.WithLabelValues("it")); got != step.ahead.Seconds() {
				t.Errorf("%v ahead, the metric says %v", step.ahead, got)
			}
		}
	})
}

func TestClockOffset(t *testing.T) {
	asked := time.Unix(1_800_000_000, 0)
	answered := asked.Add(100 * time.Millisecond)
	for read, want := range map[time.Duration]time.Duration{
		0: 0, 100 * time.Millisecond: 0, time.Second: 900 * time.Millisecond, -time.Minute: -time.Minute,
	} {
		if got := clockOffset(asked, asked.Add(read), answered); got != want {
			t.Errorf("read at %v: %v, want %v", read, got, want)
		}
	}
}

func TestAClockThatIsSet(t *testing.T) {
	c, logged := newTestChecker()
	wall := time.Unix(1_800_000_000, 0)
	for i, step := range []struct {
		by    time.Duration
		lines int
	}{{0, 0}, {0, 0}, {skewLimit - 1, 0}, {time.Hour, 1}, {0, 1}, {-3 * time.Second, 2}} {
		wall = wall.Add(checkInterval + step.by)
		c.checkClockStep(wall, time.Duration(i)*checkInterval)
		if n := strings.Count(logged.String(),
			`msg="this machine's clock was set: let time synchronisation slew it"`); n != step.lines {
			t.Errorf("set by %v, %d lines:\n%s", step.by, n, logged)
		}
	}

	if !strings.Contains(logged.String(), "by=1h0m0s") || !strings.Contains(logged.String(), "by=-3s") {
		t.Error(logged)
	}
}
