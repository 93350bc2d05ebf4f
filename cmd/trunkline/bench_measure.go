package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"trunkline/internal/loadtest"
)

// measure goes through the phases of a run. When ctx ends, those that are left
// are skipped, and the report tells what there is.
func (r *benchRun) measure(ctx context.Context) (err error) {
	defer func() {
		if closeErr := r.load.Close(); err == nil {
			err = closeErr
		}
	}()
	stop := r.showProgress()
	defer stop()
	if err := r.connect(ctx); err != nil {
		return err
	}
	if err := r.prove(ctx); err != nil || ctx.Err() != nil {
		return err
	}
	if r.climb > 0 {
		err = r.climbUp(ctx)
	} else {
		err = r.steady(ctx)
	}
	r.drain()
	return err
}

// connect opens the subscribers and measures what they cost at rest.
func (r *benchRun) connect(ctx context.Context) error {
	before, err := r.observer.usage(ctx, true)
	if err != nil {
		return err
	}
	idleBefore, err := r.idleCPU(ctx)
	if err != nil {
		return err
	}
	atStart, err := r.observer.usage(ctx, false)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := r.load.Connect(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("connecting: %w", err)
	}
	took := time.Since(began).Seconds()
	r.report.Connected = r.load.Tally().Open
	r.report.ConnectSeconds, r.report.ConnectionsPerSecond = took, float64(r.report.Connected)/took
	if r.observer.blind() || r.report.Connected == 0 {
		return nil
	}
	shaken, err := r.observer.usage(ctx, false)
	if err != nil {
		return err
	}
	idle, err := r.idleCPU(ctx)
	if err != nil {
		return err
	}
	rest, err := r.observer.usage(ctx, true)
	if err != nil {
		return err
	}
	n := float64(r.report.Connected)
	r.report.Usage = &serverUsage{
		RSSBytesBefore: before.RSS, RSSBytesConnected: rest.RSS, RSSBytesEnd: rest.RSS,
		RSSBytesPerConnection:     float64(rest.RSS-before.RSS) / n,
		GoBytesPerConnection:      float64(rest.Heap-before.Heap) / n,
		ConnectCPUMicroseconds:    float64((shaken.CPU - atStart.CPU).Microseconds()) / n,
		IdleCPUMicrosecondsPerSec: (idle - idleBefore) / n,
		BaseCPUMicrosecondsPerSec: idleBefore,
	}
	return nil
}

// idleCPU is how many microseconds of CPU the server uses in a second while
// nothing is published; 0 when that is not to be measured.
func (r *benchRun) idleCPU(ctx context.Context) (float64, error) {
	if r.idle == 0 || r.observer.blind() || !pause(ctx, min(r.idle, 2*time.Second)) { // for what is under way to end
		return 0, nil
	}
	before, err := r.observer.usage(ctx, false)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	pause(ctx, r.idle)
	after, err := r.observer.usage(ctx, false)
	return float64((after.CPU - before.CPU).Microseconds()) / time.Since(began).Seconds(), err
}

// proveWithin is how long the first events may take: servers learn of new
// accounts, and the normalizer of its partitions.
const proveWithin = 30 * time.Second

// prove publishes until every subscriber that reads has got something.
func (r *benchRun) prove(ctx context.Context) error {
	_, reading := r.load.Subscribers()
	for began := time.Now(); ctx.Err() == nil; {
		if err := r.source.Probe(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		for range 20 {
			if r.load.Tally().Proven >= reading {
				return nil
			}
			pause(ctx, 50*time.Millisecond)
		}
		if time.Since(began) > proveWithin {
			return fmt.Errorf("of %d subscribers %d got nothing within %s: is there a normalizer, and do the settings name the server's Kafka?",
				reading, reading-r.load.Tally().Proven, proveWithin)
		}
	}
	return nil
}

// publishing publishes at a rate until the function it returns is called.
func (r *benchRun) publishing(ctx context.Context, rate float64) (stop func() error) {
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

// steady measures one rate.
func (r *benchRun) steady(ctx context.Context) error {
	stop := r.publishing(ctx, r.rate)
	pause(ctx, r.warmup)
	from, err := r.look(ctx)
	if err == nil {
		pause(ctx, r.duration)
		var to moment
		if to, err = r.look(ctx); err == nil {
			r.compare(from, to)
		}
	}
	if stopErr := stop(); stopErr != nil {
		return stopErr
	}
	return err
}

// moment is everything at one time.
type moment struct {
	at        time.Time
	tally     *loadtest.Tally
	published uint64
	acks      *loadtest.Histogram
	server    loadtest.Usage
	own       loadtest.Usage
}

func (r *benchRun) look(ctx context.Context) (m moment, err error) {
	if m.server, err = r.observer.usage(ctx, false); err != nil {
		return m, err
	}
	if m.own, err = loadtest.OwnUsage(); err != nil {
		return m, err
	}
	m.at, m.tally, m.acks = time.Now(), r.load.Tally(), r.source.Acks()
	for _, n := range r.source.Published() {
		m.published += n
	}
	return m, nil
}

// compare reports what happened between two moments.
func (r *benchRun) compare(from, to moment) {
	report, seconds := &r.report, to.at.Sub(from.at).Seconds()
	report.MeasuredSeconds = seconds
	report.Published = to.published - from.published
	report.PublishedPerSecond = float64(report.Published) / seconds
	report.PublishMS = latenciesOf(to.acks.Since(from.acks))
	report.Deliveries = to.tally.Deliveries - from.tally.Deliveries
	report.DeliveriesPerSecond = float64(report.Deliveries) / seconds
	report.LatencyMS = latenciesOf(to.tally.Latency.Since(&from.tally.Latency))
	report.LoaderCPUSeconds = (to.own.CPU - from.own.CPU).Seconds()
	if report.Deliveries > 0 {
		report.MessageBytes = float64(to.tally.Bytes-from.tally.Bytes) / float64(report.Deliveries)
	}
	if usage := report.Usage; usage != nil {
		usage.CPUSeconds = (to.server.CPU - from.server.CPU).Seconds()
		usage.RSSBytesEnd = to.server.RSS
		if report.Deliveries > 0 {
			usage.CPUSecondsPerMillion = usage.CPUSeconds / float64(report.Deliveries) * 1e6
		}
	}
}

// quietFor is how long nothing may come before what is missing counts as lost.
const quietFor = 3 * time.Second

// drain waits for what is still on its way, and counts what never came.
func (r *benchRun) drain() {
	published, began := r.source.Published(), time.Now()
	var left uint64
	for last, moved := uint64(0), began; ; time.Sleep(20 * time.Millisecond) {
		tally := r.load.Tally()
		if tally.Deliveries != last {
			last, moved = tally.Deliveries, time.Now()
		}
		if left = r.load.Outstanding(published); left == 0 && tally.Lost == 0 || time.Since(moved) > quietFor {
			break
		}
	}
	report, tally := &r.report, r.load.Tally()
	report.DrainSeconds = time.Since(began).Seconds()
	report.Lost = tally.Lost + int64(left)
	report.Duplicated, report.Disordered, report.Repeated = tally.Duplicated, tally.Disordered, tally.Repeated
	report.Misbehaved, report.Foreign, report.Resumed = tally.Misbehaved, tally.Foreign, tally.Resumed
	report.Stalled, report.StalledClosed = tally.Stalled, tally.StalledEnd
	report.Closed, report.Refused = tally.Closed, r.load.Refused()
}
