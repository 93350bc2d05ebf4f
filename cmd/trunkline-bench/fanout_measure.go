package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"trunkline/cmd/trunkline-bench/load"
	"trunkline/internal/retry"
)

// measure runs the phases of a run. When ctx ends, it skips the remaining phases; the report has
// the measurements so far.
func (r *fanoutRun) measure(ctx context.Context) (err error) {
	defer func() {
		closeErr := r.load.Close()
		if err == nil {
			err = closeErr
		}
	}()

	stop := r.showProgress()
	defer stop()

	if err := r.connect(ctx); err != nil {
		return err
	}

	err = r.awaitFirstEvents(ctx)
	if err != nil || ctx.Err() != nil {
		return err
	}

	if r.climb > 0 {
		err = r.climbUp(ctx)
	} else {
		err = r.measureRate(ctx, r.rate)
	}

	r.reportTotals()
	return err
}

// firstEventTimeout bounds the wait for the first events: servers first load new accounts, and the
// normalizer is assigned its partitions.
const firstEventTimeout = 30 * time.Second

// awaitFirstEvents publishes until every reading subscriber has received an event.
func (r *fanoutRun) awaitFirstEvents(ctx context.Context) error {
	// Probes are not counted: publishing them until all have one costs the measurement nothing.
	_, reading := r.load.Subscribers()
	for began := time.Now(); ctx.Err() == nil; {
		err := r.source.Probe(ctx)
		if err != nil && ctx.Err() == nil {
			return err
		}

		for range 20 {
			if r.load.Tally().Proven >= reading {
				return nil
			}
			retry.Sleep(ctx, 50*time.Millisecond)
		}

		if time.Since(began) > firstEventTimeout {
			return fmt.Errorf(
				"%d subscribers: %d received no event within %s: is there a normalizer, and do the settings name the server's Kafka?",
				reading, reading-r.load.Tally().Proven, firstEventTimeout)
		}
	}

	return nil
}

// startPublishing publishes at a rate until the returned function is called, which returns the error.
func (r *fanoutRun) startPublishing(ctx context.Context, rate float64) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var err error
	var running sync.WaitGroup
	running.Go(func() { err = r.source.Run(ctx, rate) })
	return func() error {
		cancel()
		running.Wait()
		return err
	}
}

// measureRate publishes at one rate and reports the time after the warm-up.
func (r *fanoutRun) measureRate(ctx context.Context, rate float64) error {
	stop := r.startPublishing(ctx, rate)
	err := measureWindow(ctx, r.warmup, r.duration, r.readCounters, r.reportDifference)
	return errors.Join(err, stop())
}

// fanoutCounters holds all counters at one time.
type fanoutCounters struct {
	time      time.Time
	tally     *load.Tally
	published uint64
	acks      *load.Histogram
	server    load.Usage
	processes map[int]time.Duration // CPU of each process of the server
	loader    load.Usage
}

func (r *fanoutRun) readCounters(ctx context.Context) (m fanoutCounters, err error) {
	m.server, err = r.observer.usage(ctx, false)
	if err != nil {
		return m, err
	}

	m.processes, err = r.observer.cpuByProcess()
	if err != nil {
		return m, err
	}

	m.loader, err = load.OwnUsage()
	if err != nil {
		return m, err
	}

	m.time, m.tally, m.acks = time.Now(), r.load.Tally(), r.source.Acks()
	for _, n := range r.source.Published() {
		m.published += n
	}

	return m, nil
}

// reportDifference reports the differences between two readings of the counters.
func (r *fanoutRun) reportDifference(from, to fanoutCounters) {
	report, seconds := &r.report, to.time.Sub(from.time).Seconds()
	report.MeasuredSeconds = seconds
	report.Published = to.published - from.published
	report.PublishedPerSecond = float64(report.Published) / seconds
	report.PublishMS = newLatencies(to.acks.Since(from.acks))
	report.Deliveries = to.tally.Deliveries - from.tally.Deliveries
	report.DeliveriesPerSecond = float64(report.Deliveries) / seconds
	report.LatencyMS = newLatencies(to.tally.Latency.Since(&from.tally.Latency))
	report.LoaderCPUSeconds = (to.loader.CPU - from.loader.CPU).Seconds()

	if report.Deliveries > 0 {
		report.MessageBytes = float64(to.tally.Bytes-from.tally.Bytes) / float64(report.Deliveries)
	}

	if report.Usage != nil {
		usage := *report.Usage // climbUp keeps the previous report
		report.Usage = &usage
		usage.CPUSeconds = (to.server.CPU - from.server.CPU).Seconds()
		usage.RSSBytesEnd = to.server.RSS

		usage.ProcessCPUSeconds = map[int]float64{}
		for pid, cpu := range to.processes {
			usage.ProcessCPUSeconds[pid] = (cpu - from.processes[pid]).Seconds()
		}

		if report.Deliveries > 0 {
			usage.CPUSecondsPerMillion = usage.CPUSeconds / float64(report.Deliveries) * 1e6
		}
	}
}

// drainTimeout is the time without events after which missing ones count as lost.
const drainTimeout = 3 * time.Second

// drain waits for outstanding events and returns the number of lost ones.
func (r *fanoutRun) drain() (left uint64) {
	published := r.source.Published()
	for last, moved := uint64(0), time.Now(); ; time.Sleep(20 * time.Millisecond) {
		tally := r.load.Tally()
		if tally.Deliveries != last {
			last, moved = tally.Deliveries, time.Now()
		}

		left = r.load.Outstanding(published)
		if left == 0 && tally.Lost == 0 || time.Since(moved) > drainTimeout {
			return left
		}
	}
}

// reportTotals reports the totals of every subscriber over the whole run.
func (r *fanoutRun) reportTotals() {
	began := time.Now()
	left := r.drain()
	report, tally := &r.report, r.load.Tally()
	report.DrainSeconds = time.Since(began).Seconds()
	report.Lost = tally.Lost + int64(left)
	report.Duplicated, report.Disordered, report.Repeated = tally.Duplicated, tally.Disordered, tally.Repeated
	report.Misbehaved, report.Foreign, report.Resumed = tally.Misbehaved, tally.Foreign, tally.Resumed
	report.Stalled, report.StalledClosed = tally.Stalled, tally.StalledEnd
	report.Closed, report.Refused = tally.Closed, r.load.Refused()
}
