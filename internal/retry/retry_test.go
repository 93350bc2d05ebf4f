package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/internal/fault"
)

func TestWaitsDoubleWithinTheirBounds(t *testing.T) {
	b := Backoff{First: 100 * time.Millisecond, Max: time.Second}
	for round := range 2 {
		if b.Started() {
			t.Errorf("round %d: started before the first wait", round)
		}

		for i, bound := range []time.Duration{100, 200, 400, 800, 1000, 1000} {
			bound *= time.Millisecond
			if d := b.Next(); d < bound/2 || d > bound {
				t.Errorf("round %d: wait %d is %v, want %v to %v", round, i, d, bound/2, bound)
			}
		}

		if !b.Started() {
			t.Errorf("round %d: not started after waits", round)
		}

		b.Reset()
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		b := Backoff{First: time.Hour, Max: time.Hour}
		began := time.Now()
		if b.Wait(ctx) || time.Since(began) != time.Second {
			t.Errorf("waited %v", time.Since(began))
		}
		if Sleep(ctx, 0) {
			t.Error("no wait succeeds after the end")
		}

		began = time.Now()
		if !Sleep(t.Context(), time.Minute) || time.Since(began) != time.Minute {
			t.Errorf("slept %v", time.Since(began))
		}
	})
}

func TestCallsAreRepeatedWhileABackendIsUnavailable(t *testing.T) {
	unavailable, permanent := fault.Unavailable(nil, 0, "unavailable"), errors.New("permanent")
	for name, c := range map[string]struct {
		results []error
		want    error
	}{
		"at once":                  {[]error{nil}, nil},
		"after two":                {[]error{unavailable, unavailable, nil}, nil},
		"an error of another kind": {[]error{unavailable, permanent}, permanent},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls, reports := 0, 0
			err := WhileUnavailable(func(action string, err error, wait time.Duration) {
				reports++
				if action != "reading" || err != unavailable || wait <= 0 {
					t.Errorf("%s: reported %s, %v, %v", name, action, err, wait)
				}
			})(t.Context(), "reading", func() error {
				calls++
				return c.results[calls-1]
			})
			if !errors.Is(err, c.want) || calls != len(c.results) || reports != calls-1 {
				t.Errorf("%s: %v after %d calls, %d reports", name, err, calls, reports)
			}
			if err != nil && err.Error() != "reading: permanent" {
				t.Errorf("%s: error %q", name, err)
			}
		})
	}

	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()

		err := WhileUnavailable(func(string, error, time.Duration) {})(ctx, "reading",
			func() error { return unavailable })
		if err != context.DeadlineExceeded {
			t.Errorf("after the context's end: %v", err)
		}
	})
}

func TestTicksEndWithTheContextAndWithTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()

		began, ticks := time.Now(), 0
		for now := range Ticks(ctx, time.Second) {
			ticks++
			if now.Sub(began) != time.Duration(ticks)*time.Second {
				t.Errorf("tick %d came after %v", ticks, now.Sub(began))
			}
		}

		if ticks != 3 {
			t.Errorf("%d ticks", ticks)
		}

		for range Ticks(t.Context(), time.Second) {
			break
		}
	})
}
