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

	"trunkline/internal/fault"
)

// waiting returns a process that can wait, and its log.
func waiting() (*process, *bytes.Buffer) {
	var output bytes.Buffer
	return &process{health: &health{}, log: slog.New(slog.NewTextHandler(&output, nil))}, &output
}

func TestWaitingIsLoggedEveryHalfMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, output := waiting()
		began := time.Now()
		err := a.awaitBackend(t.Context(), "it", "check it", func(context.Context) error {
			if time.Since(began) < 70*time.Second {
				return fault.Unavailable(errors.New("not\nyet"), 0, "away")
			}
			return nil
		}, func(err error) bool { return fault.KindOf(err) == fault.KindUnavailable })

		text := output.String()
		if n := strings.Count(text, `msg="waiting for it: check it" error="away: not yet"`); err != nil || n != 3 {
			t.Errorf("%v, logged %d times:\n%s", err, n, text)
		}
		if !strings.Contains(text, `msg="it is available" after=1m10s`) ||
			a.health.unreadyReason() != "waiting for it" {
			t.Errorf("%s: %s", a.health.unreadyReason(), text)
		}
	})
}

func TestWaitingEndsWithItsContextAndWithALastingError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, output := waiting()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()

		away := func(context.Context) error { return fault.Unavailable(nil, 0, "away") }
		always := func(error) bool { return true }
		if err := a.awaitBackend(ctx, "it", "check it", away, always); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}

		output.Reset()
		wrong := errors.New("wrong for good")
		if err := a.awaitBackend(t.Context(), "it", "check it", func(context.Context) error { return wrong },
			func(error) bool { return false }); !errors.Is(err, wrong) || output.Len() > 0 {
			t.Errorf("%v: %s", err, output)
		}
	})
}
