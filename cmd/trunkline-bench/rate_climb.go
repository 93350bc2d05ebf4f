package main

import (
	"context"
	"errors"
	"time"
)

// climbFactor is the ratio of one step of a climb to the step before.
const climbFactor = 1.15

// climb measures at rising rates until p99 exceeds the limit or step reports a failure twice at
// the same rate (other load on the machine may disturb one measurement). step returns the p99
// latency in milliseconds and whether all requests succeeded. climb calls saveStep after each
// successful step, so that the last call is for the highest rate.
func climb(ctx context.Context, rate float64, limit time.Duration,
	step func(ctx context.Context, rate float64) (p99 float64, ok bool, err error), saveStep func()) error {
	saved, failures := false, 0
	for ctx.Err() == nil && failures < 2 && rate <= maxRate {
		p99, ok, err := step(ctx, rate)
		if err != nil {
			return err
		}

		if !ok || p99 > ms(limit) {
			failures++
			continue
		}

		saveStep()
		saved, failures = true, 0
		rate *= climbFactor
	}

	if !saved && ctx.Err() == nil {
		return errors.New("p99 is above the limit at the first rate, or requests fail: start with a lower --rate")
	}

	return nil
}
