package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"trunkline/internal/retry"
)

// prove sends until every stream of every flow has produced a record.
func (r *pipelineRun) prove(ctx context.Context) error {
	for began := time.Now(); ctx.Err() == nil; {
		missing := ""
		for _, f := range r.flows() {
			if f.trail.Tally().Proven == r.accounts {
				continue
			}
			if err := f.source.Probe(ctx); err != nil && ctx.Err() == nil {
				return err
			}
			missing = f.topic
		}
		if missing == "" {
			return nil
		}
		for range 20 {
			if r.proven() || !retry.Sleep(ctx, 50*time.Millisecond) {
				break
			}
		}
		if err := r.follower.err(); err != nil {
			return err
		}
		if time.Since(began) > proveWithin && !r.proven() {
			return fmt.Errorf("nothing has come out of some of %d accounts' records on %s within %s (dead letters: %s): "+
				"is there a normalizer, and do the settings name the server's Kafka?",
				r.accounts, missing, proveWithin, kinds(r.dead.ofProbes()))
		}
	}
	return ctx.Err()
}

func (r *pipelineRun) proven() bool {
	for _, f := range r.flows() {
		if f.trail.Tally().Proven < r.accounts {
			return false
		}
	}
	return true
}

// measure runs the phases of a run. When ctx ends, it skips the remaining phases; the report has
// the measurements so far.
func (r *pipelineRun) measure(ctx context.Context) (err error) {
	defer r.showProgress()()
	if r.lookups != nil {
		stop := runUntil(ctx, r.lookups.run)
		defer func() {
			err = errors.Join(err, stop())
			r.report.Reports = r.lookups.report()
		}()
	}
	if r.climb > 0 {
		err = r.climbUp(ctx)
	} else {
		err = r.window(ctx, r.rate)
	}
	r.conclude()
	return errors.Join(err, r.follower.err())
}

func (r *pipelineRun) climbUp(ctx context.Context) error {
	best := r.report
	err := climb(ctx, r.rate, r.climb, func(ctx context.Context, rate float64) (p99 float64, ok bool, err error) {
		if err := r.window(ctx, rate); err != nil {
			return 0, false, err
		}
		r.drain() // a step must not include the backlog of the previous one
		events := r.report.Events
		r.report.Rate = rate
		r.report.Climb = append(r.report.Climb, pipelineStep{rate, events.SentPerSecond, events.RecordsPerSecond, events.LatencyMS})
		return events.LatencyMS.P99, events.Records > 0, r.follower.err()
	}, func() { best = r.report })
	if best.Events.Records > 0 {
		best.Climb = r.report.Climb
		r.report = best
	}
	return err
}

// window sends at one rate and reports the time after the warm-up. It ends early when sending
// fails permanently.
func (r *pipelineRun) window(ctx context.Context, rate float64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	send := func(f *flow, rate float64) (stop func() error) {
		return runUntil(ctx, func(ctx context.Context) error {
			err := f.source.Run(ctx, rate)
			if err != nil {
				cancel()
			}
			return err
		})
	}
	stops := []func() error{send(r.events, rate)}
	if r.calls != nil {
		stops = append(stops, send(r.calls, r.callRecords))
	}
	err := measured(ctx, r.warmup, r.duration, r.look, r.compare)
	cancel()
	for _, stop := range stops {
		err = errors.Join(err, stop())
	}
	return err
}

// drain waits for outstanding records.
func (r *pipelineRun) drain() {
	for last, moved := uint64(0), time.Now(); ; time.Sleep(20 * time.Millisecond) {
		seen, missing := uint64(0), int64(0)
		for _, f := range r.flows() {
			tally := f.trail.Tally()
			seen += tally.Records
			missing += tally.Missing + int64(f.trail.Outstanding(f.source.Published())) - int64(sum(r.dead.of(f.topic)))
		}
		if seen != last {
			last, moved = seen, time.Now()
		}
		if missing <= 0 || time.Since(moved) > r.wait || r.follower.err() != nil {
			return
		}
	}
}

// conclude reports the totals of the whole run.
func (r *pipelineRun) conclude() {
	began := time.Now()
	r.drain()
	r.report.DrainSeconds = time.Since(began).Seconds()
	r.events.conclude(&r.report.Events, r.dead)
	if r.calls != nil {
		if r.report.CallRecords == nil {
			r.report.CallRecords = &flowReport{}
		}
		r.calls.conclude(r.report.CallRecords, r.dead)
	}
}

func (f *flow) conclude(report *flowReport, dead *deadLetters) {
	tally := f.trail.Conclude(f.source.Published())
	report.WholeRun, report.Partitions = tally.PartitionTally, tally.Partitions
	report.DeadLetters = dead.of(f.topic)
	report.Lost = max(tally.Missing-int64(sum(report.DeadLetters)), 0)
	if f.http != nil {
		report.BusyAnswers = f.http.busy.Load()
	}
}
