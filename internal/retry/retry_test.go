package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
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
		if began = time.Now(); !Sleep(t.Context(), time.Minute) || time.Since(began) != time.Minute {
			t.Errorf("slept %v", time.Since(began))
		}
	})
}

func TestDoTriesAgainAfterTemporaryErrors(t *testing.T) {
	temporary, permanent := errors.New("temporary"), errors.New("permanent")
	isTemporary := func(err error) bool { return err == temporary }
	backoff := Backoff{First: time.Second, Max: time.Second}
	for name, c := range map[string]struct {
		results []error
		want    error
	}{
		"at once":                  {[]error{nil}, nil},
		"after two":                {[]error{temporary, temporary, nil}, nil},
		"an error that is no such": {[]error{temporary, permanent}, permanent},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls, reports := 0, 0
			err := Do(t.Context(), backoff, isTemporary, func(err error, wait time.Duration) {
				if reports++; err != temporary || wait <= 0 {
					t.Errorf("%s: reported %v, %v", name, err, wait)
				}
			}, func() error {
				calls++
				return c.results[calls-1]
			})
			if err != c.want || calls != len(c.results) || reports != calls-1 {
				t.Errorf("%s: %v after %d calls, %d reports", name, err, calls, reports)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := Do(ctx, backoff, isTemporary, func(error, time.Duration) {}, func() error { return temporary })
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
			if ticks++; now.Sub(began) != time.Duration(ticks)*time.Second {
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
