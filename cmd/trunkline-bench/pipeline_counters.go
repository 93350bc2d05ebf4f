package main

import (
	"context"
	"time"

	"trunkline/cmd/trunkline-bench/load"
)

// pipelineCounters holds all counters at one time.
type pipelineCounters struct {
	time           time.Time
	events, calls  flowCounters
	server, loader load.Usage
}

// flowCounters holds the counters of one flow at one time.
type flowCounters struct {
	sent  uint64
	acks  *load.Histogram
	tally *load.TopicTally
}

func (r *pipelineRun) readCounters(ctx context.Context) (m pipelineCounters, err error) {
	m.server, err = r.observer.usage(ctx, false)
	if err != nil {
		return m, err
	}

	m.loader, err = load.OwnUsage()
	if err != nil {
		return m, err
	}

	m.time, m.events = time.Now(), r.eventFlow.readCounters()
	if r.callRecordFlow != nil {
		m.calls = r.callRecordFlow.readCounters()
	}

	return m, nil
}

func (f *flow) readCounters() flowCounters {
	m := flowCounters{acks: f.source.Acks(), tally: f.checker.Tally()}
	for _, n := range f.source.Published() {
		m.sent += n
	}
	return m
}

// reportDifference reports the differences between two readings of the counters.
func (r *pipelineRun) reportDifference(from, to pipelineCounters) {
	report, seconds := &r.report, to.time.Sub(from.time).Seconds()
	report.MeasuredSeconds = seconds
	report.Events.setDifference(from.events, to.events, seconds)
	records := report.Events.Records

	if r.callRecordFlow != nil {
		report.CallRecords = &flowReport{} // climbUp keeps the previous report
		report.CallRecords.setDifference(from.calls, to.calls, seconds)
		records += report.CallRecords.Records
	}

	report.LoaderCPUSeconds = (to.loader.CPU - from.loader.CPU).Seconds()
	report.Usage = r.observer.usageBetween(from.server, to.server, seconds, records)
}

func (f *flowReport) setDifference(from, to flowCounters, seconds float64) {
	f.Sent = to.sent - from.sent
	f.SentPerSecond = float64(f.Sent) / seconds
	f.AcknowledgedMS = newLatencies(to.acks.Since(from.acks))
	f.Records = to.tally.Records - from.tally.Records
	f.RecordsPerSecond = float64(f.Records) / seconds
	f.LatencyMS = newLatencies(to.tally.Latency.Since(&from.tally.Latency))
	f.Backlog = int64(to.sent) - int64(to.tally.Records)

	if f.Records > 0 {
		f.RecordBytes = float64(to.tally.Bytes-from.tally.Bytes) / float64(f.Records)
	}
}
