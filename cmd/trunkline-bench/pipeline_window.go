package main

import (
	"context"
	"time"

	"trunkline/internal/loadtest"
)

// pipelineMoment holds all counters at one time.
type pipelineMoment struct {
	at            time.Time
	events, calls flowMoment
	server, own   loadtest.Usage
}

// flowMoment holds the counters of one flow at one time.
type flowMoment struct {
	sent  uint64
	acks  *loadtest.Histogram
	tally *loadtest.TrailTally
}

func (r *pipelineRun) look(ctx context.Context) (m pipelineMoment, err error) {
	if m.server, err = r.observer.usage(ctx, false); err != nil {
		return m, err
	}
	if m.own, err = loadtest.OwnUsage(); err != nil {
		return m, err
	}
	m.at, m.events = time.Now(), r.events.look()
	if r.calls != nil {
		m.calls = r.calls.look()
	}
	return m, nil
}

func (f *flow) look() flowMoment {
	m := flowMoment{acks: f.source.Acks(), tally: f.trail.Tally()}
	for _, n := range f.source.Published() {
		m.sent += n
	}
	return m
}

// compare reports the differences between two moments.
func (r *pipelineRun) compare(from, to pipelineMoment) {
	report, seconds := &r.report, to.at.Sub(from.at).Seconds()
	report.MeasuredSeconds = seconds
	report.Events.compare(from.events, to.events, seconds)
	records := report.Events.Records
	if r.calls != nil {
		report.CallRecords = &flowReport{} // climbUp keeps the previous report
		report.CallRecords.compare(from.calls, to.calls, seconds)
		records += report.CallRecords.Records
	}
	report.LoaderCPUSeconds = (to.own.CPU - from.own.CPU).Seconds()
	report.Usage = r.observer.between(from.server, to.server, seconds, records)
}

func (f *flowReport) compare(from, to flowMoment, seconds float64) {
	f.Sent = to.sent - from.sent
	f.SentPerSecond = float64(f.Sent) / seconds
	f.AcknowledgedMS = latenciesOf(to.acks.Since(from.acks))
	f.Records = to.tally.Records - from.tally.Records
	f.RecordsPerSecond = float64(f.Records) / seconds
	f.LatencyMS = latenciesOf(to.tally.Latency.Since(&from.tally.Latency))
	f.Backlog = int64(to.sent) - int64(to.tally.Records)
	if f.Records > 0 {
		f.RecordBytes = float64(to.tally.Bytes-from.tally.Bytes) / float64(f.Records)
	}
}
