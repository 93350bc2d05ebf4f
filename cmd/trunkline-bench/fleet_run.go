package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load"
	"trunkline/event"
)

// run measures one node, then the fleet.
func (b *fleetBench) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "trunkline-fleet-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	h := &fleetHost{fleetBench: b, dir: dir}
	defer func() { err = errors.Join(err, h.stop(true)) }()

	if err := h.startShared(ctx); err != nil {
		return unlessInterrupted(ctx, err)
	}

	report := fleetReport{Accounts: b.accounts, Sockets: b.sockets, Rate: b.rate, EventBytes: b.size,
		Partitions: b.partitions}
	report.One, err = h.measureSide(ctx, 1)
	if err == nil && ctx.Err() == nil {
		report.Fleet, err = h.measureSide(ctx, b.nodes)
	}

	report.Interrupted = ctx.Err() != nil
	report.LoadAverage = loadAverage()
	report.setRatio()
	printer := bench{p: b.p, asJSON: b.asJSON}

	return printer.printReport(&report, err)
}

// measureSide starts a number of nodes and a balancer, measures them and stops them.
func (h *fleetHost) measureSide(ctx context.Context, nodes int) (side fleetSide, err error) {
	defer func() { err = errors.Join(err, h.stop(false)) }()

	side.Nodes = nodes
	var fanout []*fleetProcess
	for range nodes {
		n, err := h.startNode(ctx, fmt.Sprintf("node-%d", len(fanout)+1), "fanout", true)
		if err != nil {
			return side, err
		}
		fanout = append(fanout, n)
	}

	url, err := h.startBalancer(ctx, fanout)
	if err != nil {
		return side, err
	}

	flags := h.fanoutFlags(url)
	if err := load.RaiseFileLimit(uint64(flags.subscribers) + spareFiles); err != nil {
		return side, err
	}

	r := &fanoutRun{fanoutBench: flags}
	defer r.cleanup.run()

	if err := r.prepare(ctx); err != nil {
		return side, err
	}
	defer func() { err = errors.Join(err, r.load.Close()) }()

	stop := r.showProgress()
	defer stop()

	if err := r.connect(ctx); err != nil {
		return side, err
	}

	err = r.awaitFirstEvents(ctx)
	if err != nil || ctx.Err() != nil {
		return side, err
	}

	publishing := r.startPublishing(ctx, h.rate)
	readCounters := func(ctx context.Context) (m fleetCounters, err error) {
		m.fanoutCounters, err = r.readCounters(ctx)
		if err == nil {
			m.processes, err = h.usages(ctx)
		}
		return m, err
	}

	err = measureWindow(ctx, h.warmup, h.duration, readCounters, func(from, to fleetCounters) {
		r.reportDifference(from.fanoutCounters, to.fanoutCounters)
		side.setUsage(h.processes, from.processes, to.processes, &r.report, float64(to.tally.Bytes-from.tally.Bytes))
	})

	err = errors.Join(err, publishing())
	r.reportTotals()
	side.Run = r.report

	return side, err
}

// fleetCounters holds all counters at one time.
type fleetCounters struct {
	fanoutCounters
	processes []processUsage // in the order of fleetHost.processes
}

// processUsage holds the CPU time and bytes that a process has used since its start.
type processUsage struct {
	load.Usage
	readBytes, writtenBytes      float64 // bytes of its read and write calls, except those sent to subscribers
	producedBytes, consumedBytes float64 // bytes of cc.evt that it has produced and consumed
	deliveries                   float64 // events that it has queued
	followedPartitions           float64 // partitions that it follows now
}

func (h *fleetHost) usages(ctx context.Context) ([]processUsage, error) {
	var all []processUsage
	for _, p := range h.processes {
		u, err := p.usage(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, u)
	}
	return all, nil
}

func (p *fleetProcess) usage(ctx context.Context) (u processUsage, err error) {
	u.Usage, err = load.ProcessUsage(p.cmd.Process.Pid)
	if err != nil {
		return u, err
	}

	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", p.cmd.Process.Pid))
	if err != nil {
		return u, err
	}

	_, err = fmt.Sscanf(string(text), "rchar: %f\nwchar: %f", &u.readBytes, &u.writtenBytes)
	if err != nil {
		return u, fmt.Errorf("reading the bytes of process %d: %w", p.cmd.Process.Pid, err)
	}

	if p.node.Metrics == "" {
		return u, nil
	}

	// After an interrupt too: the report has the figures so far.
	request, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet,
		"http://"+p.node.Metrics+"/metrics", nil)
	if err != nil {
		return u, err
	}

	text, err = cli.Fetch(&http.Client{Timeout: requestTimeout}, request, http.StatusOK)
	if err != nil {
		return u, err
	}

	u.producedBytes = seriesValue(text, `trunkline_kafka_produced_bytes_total{topic="`+event.TopicEvents+`"}`)
	u.consumedBytes = seriesValue(text, `trunkline_kafka_consumed_bytes_total{topic="`+event.TopicEvents+`"}`)
	u.deliveries = seriesValue(text, "trunkline_fanout_deliveries_total")
	u.followedPartitions = seriesValue(text, "trunkline_fanout_partitions_followed")

	return u, nil
}

// seriesValue returns the value of a series in the Prometheus text format; 0 if it is missing.
func seriesValue(text []byte, series string) float64 {
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), series+" "); ok {
			n, err := strconv.ParseFloat(value, 64)
			if err == nil {
				return n
			}
		}
	}

	return 0
}

// loadAverage returns the machine's load average of the last minute; 0 if unknown.
func loadAverage() (load float64) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	_, err = fmt.Sscan(string(text), &load)
	if err != nil {
		return 0
	}
	return load
}
