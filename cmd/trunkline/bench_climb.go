package main

import (
	"context"
	"errors"
)

// climbFactor is how much a step of a climb is above the one before.
const climbFactor = 1.15

// climbUp raises the rate until p99 is above the limit twice at the same rate,
// and reports the best step. Twice: a machine has other things to do, too.
func (r *benchRun) climbUp(ctx context.Context) error {
	best, failures := r.report, 0
	for rate := r.rate; ctx.Err() == nil && failures < 2; {
		if err := r.window(ctx, rate); err != nil {
			return err
		}
		r.drain() // a step must not wait for what the one before has left
		step := climbStep{rate, r.report.DeliveriesPerSecond, r.report.LatencyMS}
		r.report.Rate = rate
		r.report.Climb = append(r.report.Climb, step)
		if step.LatencyMS.P99 > ms(r.climb) || r.report.Deliveries == 0 {
			failures++
			continue
		}
		best, failures = r.report, 0
		rate *= climbFactor
	}
	if best.Deliveries == 0 {
		return errors.New("p99 is above the limit at the first rate: begin with a lower --rate")
	}
	steps := r.report.Climb
	r.report = best
	r.report.Climb = steps
	return nil
}
