package retry

import (
	"context"
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
