package main

import "context"

// climbUp raises the rate and reports the best step.
func (r *fanoutRun) climbUp(ctx context.Context) error {
	best := r.report
	err := climb(ctx, r.rate, r.climb, func(ctx context.Context, rate float64) (p99 float64, ok bool, err error) {
		if err := r.measureRate(ctx, rate); err != nil {
			return 0, false, err
		}

		r.drain() // a step must not include the backlog of the previous one
		step := fanoutStep{rate, r.report.DeliveriesPerSecond, r.report.LatencyMS}
		r.report.Rate = rate
		r.report.Climb = append(r.report.Climb, step)

		return step.LatencyMS.P99, r.report.Deliveries > 0, nil
	}, func() { best = r.report })

	if best.Deliveries > 0 {
		best.Climb = r.report.Climb
		r.report = best
	}

	return err
}
