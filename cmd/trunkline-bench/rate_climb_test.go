package main

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"
)

func TestClimbEndsWithTheBestStep(t *testing.T) {
	type answer struct {
		p99 float64
		ok  bool
	}

	for name, c := range map[string]struct {
		answers []answer
		best    float64 // rate, as a power of climbFactor; below zero: none
		err     bool
	}{
		"slow twice":           {[]answer{{1, true}, {2, true}, {300, true}, {300, true}}, 1, false},
		"slow once":            {[]answer{{1, true}, {300, true}, {1, true}, {300, true}, {300, true}}, 1, false},
		"failed twice":         {[]answer{{1, true}, {1, false}, {1, false}}, 0, false},
		"slow, then failed":    {[]answer{{1, true}, {300, true}, {1, false}}, 0, false},
		"slow from the start":  {[]answer{{300, true}, {300, true}}, -1, true},
		"a step does not work": {[]answer{{1, true}, {math.NaN(), true}}, 0, true},
	} {
		step, best, rate := 0, -1.0, 0.0
		err := climb(t.Context(), 100, 200*time.Millisecond, func(_ context.Context, r float64) (float64, bool, error) {
			a := c.answers[step]
			step, rate = step+1, r
			if math.IsNaN(a.p99) {
				return 0, false, errors.New("broken")
			}
			return a.p99, a.ok, nil
		}, func() { best = math.Round(math.Log(rate/100) / math.Log(climbFactor)) })
		if (err != nil) != c.err || best != c.best || step != len(c.answers) {
			t.Errorf("%s: %v, best %v after %d steps", name, err, best, step)
		}
	}
}

func TestClimbEndsWhenItIsInterrupted(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	steps := 0
	err := climb(ctx, 100, time.Second, func(context.Context, float64) (float64, bool, error) {
		steps++
		stop()
		return 5000, true, nil
	}, func() { t.Error("a slow step was kept") })
	if err != nil || steps != 1 {
		t.Errorf("%v after %d steps", err, steps)
	}
}
