package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"trunkline/cmd/trunkline-bench/load"
)

// latencies are percentiles in milliseconds.
type latencies struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

func newLatencies(h *load.Histogram) latencies {
	return latencies{ms(h.Quantile(.5)), ms(h.Quantile(.9)), ms(h.Quantile(.99)), ms(h.Quantile(.999)), ms(h.Max())}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (l latencies) String() string {
	return fmt.Sprintf("p50 %.1f, p90 %.1f, p99 %.1f, p99.9 %.1f, max %.1f ms", l.P50, l.P90, l.P99, l.P999, l.Max)
}

func mb(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// formatCounts formats counters with their labels.
func formatCounts[N int | uint64](counters map[int]N) string {
	if len(counters) == 0 {
		return "none"
	}

	var parts []string
	for _, key := range slices.Sorted(maps.Keys(counters)) {
		if key == 0 {
			parts = append(parts, fmt.Sprintf("%d without an answer", counters[key]))
			continue
		}
		parts = append(parts, fmt.Sprintf("%d with %d", counters[key], key))
	}

	return strings.Join(parts, ", ")
}
