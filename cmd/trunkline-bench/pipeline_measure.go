package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"trunkline/internal/retry"
)

// awaitFirstRecords sends until every stream of every flow has produced a record.
func (r *pipelineRun) awaitFirstRecords(ctx context.Context) error {
	for began := time.Now(); ctx.Err() == nil; {
		missing := ""
		for _, f := range r.flows() {
			if f.checker.Tally().Proven == r.accounts {
				continue
			}

			err := f.source.Probe(ctx)
			if err != nil && ctx.Err() == nil {
				return err
			}

			missing = f.topic
		}

		if missing == "" {
			return nil
		}

		for range 20 {
			if r.allProven() || !retry.Sleep(ctx, 50*time.Millisecond) {
				break
			}
		}

		if err := r.follower.err(); err != nil {
			return err
		}

		if time.Since(began) > firstEventTimeout && !r.allProven() {
			return fmt.Errorf("no normalized records of some of the %d accounts on %s within %s (dead letters: %s): "+
				"is there a normalizer, and do the settings name the server's Kafka?",
				r.accounts, missing, firstEventTimeout, formatKinds(r.deadLetters.probesByKind()))
		}
	}

	return ctx.Err()
}

func (r *pipelineRun) allProven() bool {
	for _, f := range r.flows() {
		if f.checker.Tally().Proven < r.accounts {
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
		stop := startUntil(ctx, r.lookups.run)
		defer func() {
			err = errors.Join(err, stop())
			r.report.Reports = r.lookups.report()
		}()
	}

	if r.climb > 0 {
		err = r.climbUp(ctx)
	} else {
		err = r.measureRate(ctx, r.rate)
	}

	r.reportTotals()
	return errors.Join(err, r.follower.err())
}

func (r *pipelineRun) climbUp(ctx context.Context) error {
	best := r.report
	err := climb(ctx, r.rate, r.climb, func(ctx context.Context, rate float64) (p99 float64, ok bool, err error) {
		if err := r.measureRate(ctx, rate); err != nil {
			return 0, false, err
		}

		r.drain() // a step must not include the backlog of the previous one
		events := r.report.Events
		r.report.Rate = rate
		r.report.Climb = append(r.report.Climb,
			pipelineStep{rate, events.SentPerSecond, events.RecordsPerSecond, events.LatencyMS})

		return events.LatencyMS.P99, events.Records > 0, r.follower.err()
	}, func() { best = r.report })

	if best.Events.Records > 0 {
		best.Climb = r.report.Climb
		r.report = best
	}

	return err
}

// measureRate sends at one rate and reports the time after the warm-up. It ends early when sending
// fails permanently.
func (r *pipelineRun) measureRate(ctx context.Context, rate float64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	startFlow := func(f *flow, rate float64) (stop func() error) {
		return startUntil(ctx, func(ctx context.Context) error {
			err := f.source.Run(ctx, rate)
			if err != nil {
				cancel()
			}
			return err
		})
	}

	stops := []func() error{startFlow(r.eventFlow, rate)}
	if r.callRecordFlow != nil {
		stops = append(stops, startFlow(r.callRecordFlow, r.callRecordRate))
	}

	err := measureWindow(ctx, r.warmup, r.duration, r.readCounters, r.reportDifference)
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
			tally := f.checker.Tally()
			seen += tally.Records
			missing += tally.Missing +
				int64(f.checker.Outstanding(f.source.Published())) - int64(sumCounts(r.deadLetters.byKind(f.topic)))
		}

		if seen != last {
			last, moved = seen, time.Now()
		}
		if missing <= 0 || time.Since(moved) > r.wait || r.follower.err() != nil {
			return
		}
	}
}

// reportTotals reports the totals of the whole run.
func (r *pipelineRun) reportTotals() {
	began := time.Now()
	r.drain()
	r.report.DrainSeconds = time.Since(began).Seconds()
	r.eventFlow.reportTotals(&r.report.Events, r.deadLetters)

	if r.callRecordFlow != nil {
		if r.report.CallRecords == nil {
			r.report.CallRecords = &flowReport{}
		}
		r.callRecordFlow.reportTotals(r.report.CallRecords, r.deadLetters)
	}
}

func (f *flow) reportTotals(report *flowReport, dead *deadLetters) {
	tally := f.checker.FinalTally(f.source.Published())
	report.WholeRun, report.Partitions = tally.PartitionTally, tally.Partitions
	report.DeadLetters = dead.byKind(f.topic)
	report.Lost = max(tally.Missing-int64(sumCounts(report.DeadLetters)), 0)
	if f.http != nil {
		report.BusyAnswers = f.http.overloadResponses.Load()
	}
}
