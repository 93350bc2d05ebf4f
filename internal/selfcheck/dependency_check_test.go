package selfcheck

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
