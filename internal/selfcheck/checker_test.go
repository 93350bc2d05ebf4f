package selfcheck

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/internal/setting"
)

func newTestChecker(dependencies ...Dependency) (*Checker, *bytes.Buffer) {
	var logged bytes.Buffer
	return New(Config{Dependencies: dependencies}, prometheus.NewRegistry(),
		slog.New(slog.NewTextHandler(&logged, nil))), &logged
}

func TestADependencyThatIsAwayIsLoggedEveryHalfMinuteAndWhenItRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		away := func() bool { since := time.Since(began); return since >= time.Minute && since < 3*time.Minute }
		c, logged := newTestChecker(Dependency{Name: "it", Advice: "check it", Ping: func(context.Context) error {
			if away() {
				return errors.New("no answer")
			}
			return nil
		}})

		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()

		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}

		lines := strings.Split(strings.TrimSpace(logged.String()), "\n")
		if len(lines) != 5 ||
			strings.Count(logged.String(), `msg="it does not answer: check it" error="no answer"`) != 4 ||
			!strings.Contains(lines[4], `msg="it has recovered" after=2m0s`) {
			t.Errorf("it logs\n%s", logged)
		}

		if up := testutil.ToFloat64(c.metrics.up.WithLabelValues("it")); up != 1 {
			t.Errorf("up is %v", up)
		}
	})
}

func TestADependencyThatHangsDoesNotStopTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		c, logged := newTestChecker(
			Dependency{Name: "stuck", Ping: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
			Dependency{Name: "quick", Ping: func(context.Context) error { asked++; return nil }})
		c.check(t.Context())

		if asked != 1 || !strings.Contains(logged.String(), "stuck does not answer") ||
			testutil.ToFloat64(c.metrics.up.WithLabelValues("stuck")) != 0 {
			t.Errorf("asked %d times: %s", asked, logged)
		}

		// A check interrupted by the end of the process is not a fault of the dependency.
		logged.Reset()
		ended, cancel := context.WithCancel(t.Context())
		cancel()

		c.check(ended)
		if logged.Len() > 0 {
			t.Error(logged)
		}
	})
}

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

func TestSpace(t *testing.T) {
	for _, tc := range []struct {
		space diskSpace
		low   bool
	}{
		{diskSpace{Free: 63 << 20, Size: 100 << 30}, true}, {diskSpace{Free: 65 << 20, Size: 100 << 30}, false},
		{diskSpace{Free: 1 << 20, Size: 100 << 20}, true}, {diskSpace{Free: 3 << 20, Size: 100 << 20}, false},
	} {
		if got := tc.space.below(64 << 20); got != tc.low {
			t.Errorf("%v: low is %v", tc.space, got)
		}
	}

	r, err := diskSpaceOf(t.TempDir())
	if err != nil || r.Size == 0 || r.Free > r.Size {
		t.Errorf("%+v %v", r, err)
	}

	if _, err := diskSpaceOf("/absent"); err == nil {
		t.Error("there is no such place")
	}
}

func TestAStartNeedsFreeDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := (DataDir{path, 1 << 20}).Prepare(); err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	if err := (DataDir{path, 0}).Prepare(); err != nil {
		t.Errorf("without a floor: %v", err)
	}

	disk, err := diskSpaceOf(path)
	if err != nil {
		t.Fatal(err)
	}

	if disk.Free >= disk.Size/50 { // else the disk is below every floor
		if err := (DataDir{path, setting.Bytes(disk.Free / 2)}).Prepare(); err != nil {
			t.Errorf("twice the floor is free: %v", err)
		}
	}

	if err := (DataDir{filepath.Join(path, "missing"), 1}).CheckSpace(); err == nil ||
		!strings.Contains(err.Error(), "free space") {
		t.Errorf("a directory that is not there: %v", err)
	}
}

func TestAdvice(t *testing.T) {
	for err, want := range map[error]string{
		errors.New("refused"): "in general",
		fmt.Errorf("dialling: %w", x509.CertificateInvalidError{Reason: x509.Expired}):              "expired",
		fmt.Errorf("dialling: %w", x509.CertificateInvalidError{Reason: x509.TooManyIntermediates}): "in general",
		fmt.Errorf("dialling: %w", x509.UnknownAuthorityError{}):                                    "authority",
		fmt.Errorf("dialling: %w", x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"}): "name",
	} {
		if got := Advice(err, "in general"); !strings.Contains(got, want) {
			t.Errorf("%v: %s", err, got)
		}
	}
}
