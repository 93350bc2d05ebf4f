package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func watching(parts ...watched) (*watch, *bytes.Buffer) {
	var said bytes.Buffer
	return &watch{
		began: time.Now(), parts: parts, metrics: newWatchMetrics(prometheus.NewRegistry()), faults: map[string]*lastingFault{},
		log: slog.New(slog.NewTextHandler(&said, nil)),
	}, &said
}

func TestAPartThatIsAwayIsToldEachHalfMinuteAndOnceWhenItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		away := func() bool { since := time.Since(began); return since >= time.Minute && since < 3*time.Minute }
		w, said := watching(watched{name: "it", mend: "mend it", ask: func(context.Context) error {
			if away() {
				return errors.New("no answer")
			}
			return nil
		}})
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		if err := w.run(ctx); err != nil {
			t.Error(err)
		}
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		if len(lines) != 5 || strings.Count(said.String(), `msg="it does not answer: mend it" error="no answer"`) != 4 ||
			!strings.Contains(lines[4], `msg="it is well again" after=2m0s`) {
			t.Errorf("it says\n%s", said)
		}
		if up := testutil.ToFloat64(w.metrics.up.WithLabelValues("it")); up != 1 {
			t.Errorf("up is %v", up)
		}
	})
}

func TestAPartThatHangsDoesNotHoldTheOthersUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		w, said := watching(
			watched{name: "stuck", ask: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
			watched{name: "quick", ask: func(context.Context) error { asked++; return nil }})
		w.look(t.Context())
		if asked != 1 || !strings.Contains(said.String(), "stuck does not answer") || testutil.ToFloat64(w.metrics.up.WithLabelValues("stuck")) != 0 {
			t.Errorf("asked %d times: %s", asked, said)
		}
		// One that ends the process is no fault of the part's.
		said.Reset()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		w.look(ended)
		if said.Len() > 0 {
			t.Error(said)
		}
	})
}

func TestClocksThatDisagreeAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ahead time.Duration
		w, said := watching(watched{name: "it", ask: func(context.Context) error { return nil },
			clock: func(context.Context) (time.Duration, error) { return ahead, nil }})
		for _, step := range []struct {
			ahead time.Duration
			lines int
		}{{0, 0}, {skewLimit - 1, 0}, {-skewLimit, 1}, {time.Hour, 1}, {0, 2}} {
			ahead = step.ahead
			w.look(t.Context())
			if n := strings.Count(said.String(), "\n"); n != step.lines {
				t.Errorf("%v ahead, %d lines:\n%s", step.ahead, n, said)
			}
			if got := testutil.ToFloat64(w.metrics.skew.WithLabelValues("it")); got != step.ahead.Seconds() {
				t.Errorf("%v ahead, the metric says %v", step.ahead, got)
			}
		}
	})
}

func TestBetween(t *testing.T) {
	asked := time.Unix(1_800_000_000, 0)
	answered := asked.Add(100 * time.Millisecond)
	for read, want := range map[time.Duration]time.Duration{
		0: 0, 100 * time.Millisecond: 0, time.Second: 900 * time.Millisecond, -time.Minute: -time.Minute,
	} {
		if got := between(asked, asked.Add(read), answered); got != want {
			t.Errorf("read at %v: %v, want %v", read, got, want)
		}
	}
}

func TestAClockThatIsSet(t *testing.T) {
	w, said := watching()
	wall := time.Unix(1_800_000_000, 0)
	for i, step := range []struct {
		by    time.Duration
		lines int
	}{{0, 0}, {0, 0}, {skewLimit - 1, 0}, {time.Hour, 1}, {0, 1}, {-3 * time.Second, 2}} {
		wall = wall.Add(watchEvery + step.by)
		w.checkStep(wall, time.Duration(i)*watchEvery)
		if n := strings.Count(said.String(), `msg="this machine's clock was set: let time synchronisation slew it"`); n != step.lines {
			t.Errorf("set by %v, %d lines:\n%s", step.by, n, said)
		}
	}
	if !strings.Contains(said.String(), "by=1h0m0s") || !strings.Contains(said.String(), "by=-3s") {
		t.Error(said)
	}
}

func TestRoom(t *testing.T) {
	for _, tc := range []struct {
		room room
		low  bool
	}{
		{room{free: 63 << 20, size: 100 << 30}, true}, {room{free: 65 << 20, size: 100 << 30}, false},
		{room{free: 1 << 20, size: 100 << 20}, true}, {room{free: 3 << 20, size: 100 << 20}, false},
	} {
		if got := tc.room.low(); got != tc.low {
			t.Errorf("%v: low is %v", tc.room, got)
		}
	}
	r, err := roomIn(t.TempDir())
	if err != nil || r.size == 0 || r.free > r.size {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := roomIn("/absent"); err == nil {
		t.Error("there is no such place")
	}
}
