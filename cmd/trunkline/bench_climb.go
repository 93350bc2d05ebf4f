package main

import "context"

// climbFactor is how much a step of a climb is above the one before.
const climbFactor = 1.15

// climbUp raises the rate until p99 is above the limit or less comes out than
// goes in, and reports the last step before that.
func (r *benchRun) climbUp(ctx context.Context) error {
	for rate := r.rate; ctx.Err() == nil; rate *= climbFactor {
		stop := r.publishing(ctx, rate)
		pause(ctx, r.warmup)
		from, err := r.look(ctx)
		if err != nil {
			_ = stop() // the first error tells more
			return err
		}
		pause(ctx, r.duration)
		to, err := r.look(ctx)
		if stopErr := stop(); stopErr != nil || err != nil {
			return firstOf(stopErr, err)
		}
		before := r.report
		if before.Usage != nil {
			usage := *before.Usage
			before.Usage = &usage
		}
		r.compare(from, to)
		step := climbStep{rate, r.report.DeliveriesPerSecond, r.report.LatencyMS}
		r.report.Climb = append(r.report.Climb, step)
		r.report.Rate = rate
		if step.LatencyMS.P99 <= ms(r.climb) && r.report.Deliveries > 0 {
			continue
		}
		if steps := r.report.Climb; len(steps) > 1 {
			r.report = before
			r.report.Climb = steps
		}
		return nil
	}
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
