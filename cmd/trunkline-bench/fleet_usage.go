package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load"
	"trunkline/event"
)

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
