package aisession

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestBackOffIsShortAtFirstAndBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := outage{retryLimit: 10 * time.Second}
		o.recordLoss(nil)
		var tries []time.Duration

		for begun := time.Now(); o.waitForRetry(t.Context()); {
			tries = append(tries, time.Since(begun))
		}

		early := 0
		for i, at := range tries {
			if at < 2*time.Second {
				early++
			}
			if i > 0 && at-tries[i-1] > 2500*time.Millisecond {
				t.Errorf("%v without a try", at-tries[i-1])
			}
		}

		if tries[0] != 0 || early < 4 || len(tries) > 12 || tries[len(tries)-1] > 10*time.Second {
			t.Errorf("tries at %v", tries)
		}
	})
}
