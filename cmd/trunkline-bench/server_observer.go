package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"trunkline/cmd/trunkline-bench/load"
	"trunkline/internal/retry"
)

// measureWindow reads the counters of a run after the warm-up and again after duration, and reports their
// difference.
func measureWindow[M any](ctx context.Context, warmup, duration time.Duration,
	read func(context.Context) (M, error), report func(from, to M)) error {
	retry.Sleep(ctx, warmup)
	from, err := read(ctx)
	if err != nil {
		return err
	}

	retry.Sleep(ctx, duration)
	to, err := read(ctx)
	if err != nil {
		return err
	}

	report(from, to)
	return nil
}

// observer measures the server's processes from outside.
type observer struct {
	pids    []int    // --server-pid
	metrics []string // --metrics: URLs
	client  *http.Client
}

func (o *observer) disabled() bool { return len(o.pids) == 0 && len(o.metrics) == 0 }

// usage returns the sum over all processes of the server. CPU and resident memory come from the
// kernel where available, the Go heap from the process. With settled, Go processes collect their
// garbage first.
func (o *observer) usage(ctx context.Context, settled bool) (sum load.Usage, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()

	for _, base := range o.metrics {
		u, err := load.MetricsUsage(ctx, o.client, base, settled)
		if err != nil {
			return sum, err
		}

		if len(o.pids) > 0 {
			// The kernel's figures of the pids follow below.
			u = load.Usage{Heap: u.Heap}
		}

		sum = sum.Add(u)
	}

	for _, pid := range o.pids {
		u, err := load.ProcessUsage(pid)
		if err != nil {
			return sum, err
		}
		sum = sum.Add(u)
	}

	return sum, nil
}

// cpuByProcess returns the CPU time of each process so far.
func (o *observer) cpuByProcess() (map[int]time.Duration, error) {
	used := map[int]time.Duration{}
	for _, pid := range o.pids {
		u, err := load.ProcessUsage(pid)
		if err != nil {
			return nil, err
		}
		used[pid] = u.CPU
	}
	return used, nil
}

// windowUsage holds the server's usage during the measurement.
type windowUsage struct {
	CPUSeconds           float64 `json:"cpu_seconds"`
	Cores                float64 `json:"cpu_cores"`
	CPUSecondsPerMillion float64 `json:"cpu_seconds_per_million"` // records or requests
	RSSBytesBefore       int64   `json:"rss_bytes_before"`
	RSSBytesEnd          int64   `json:"rss_bytes_end"`
}

// usageBetween returns the usage between two observations, per given number of records or requests;
// nil if no process is observed.
func (o *observer) usageBetween(from, to load.Usage, seconds float64, n uint64) *windowUsage {
	if o.disabled() {
		return nil
	}
	used := (to.CPU - from.CPU).Seconds()
	u := &windowUsage{CPUSeconds: used, Cores: used / seconds, RSSBytesBefore: from.RSS, RSSBytesEnd: to.RSS}
	if n > 0 {
		u.CPUSecondsPerMillion = used / float64(n) * 1e6
	}
	return u
}

// rows returns the rows of the report; unit is what there is a million of in "per million".
func (u *windowUsage) rows(unit string) [][]string {
	if u == nil {
		return nil
	}
	return [][]string{
		{"server CPU", fmt.Sprintf("%.2f s, %.2f cores, %.1f s per million %s", u.CPUSeconds, u.Cores,
			u.CPUSecondsPerMillion, unit)},
		{"server memory", fmt.Sprintf("%.1f MB before, %.1f MB at the end", mb(u.RSSBytesBefore), mb(u.RSSBytesEnd))},
	}
}
