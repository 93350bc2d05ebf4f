package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"trunkline/cmd/trunkline-bench/load"
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
