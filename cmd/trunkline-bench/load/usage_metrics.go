package load

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MetricsUsage returns the CPU time and memory that a process reports on its metrics listener at
// base + /metrics. With collectGarbage, the process first collects its garbage, so that only
// live memory is counted.
func MetricsUsage(ctx context.Context, client *http.Client, base string, collectGarbage bool) (Usage, error) {
	base = strings.TrimSuffix(strings.TrimRight(base, "/"), "/metrics")
	if collectGarbage {
		// A heap profile with gc=1 starts with a collection. Two are needed to free objects with
		// finalizers.
		for range 2 {
			if err := get(ctx, client, base+"/debug/pprof/heap?gc=1", discard); err != nil {
				return Usage{}, fmt.Errorf(
					"memory is read after a collection, which needs debug.pprof: true on the server: %w", err)
			}
		}
	}

	var u Usage
	err := get(ctx, client, base+"/metrics", func(r io.Reader) error {
		var err error
		u, err = readMetrics(r)
		return err
	})

	return u, err
}

func discard(r io.Reader) error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// readMetrics parses the Prometheus text format.
func readMetrics(r io.Reader) (u Usage, err error) {
	found := 0
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		var set func(float64)
		switch name {
		case "process_cpu_seconds_total":
			set = func(v float64) { u.CPU = time.Duration(v * float64(time.Second)) }
		case "process_resident_memory_bytes":
			set = func(v float64) { u.RSS = int64(v) }
		case "go_memstats_heap_inuse_bytes", "go_memstats_stack_inuse_bytes":
			set = func(v float64) { u.Heap += int64(v) }
		default:
			continue
		}

		value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return Usage{}, fmt.Errorf("reading metric %s: %w", name, err)
		}

		set(value)
		found++
	}

	if err := lines.Err(); err != nil {
		return Usage{}, fmt.Errorf("reading metrics: %w", err)
	}
	if found < 4 {
		return Usage{}, fmt.Errorf("reading metrics: CPU and memory of a Go process are missing")
	}

	return u, nil
}

func get(ctx context.Context, client *http.Client, url string, read func(io.Reader) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("asking for metrics: %w", err)
	}

	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("asking for metrics: %w", err)
	}
	defer response.Body.Close()

	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking for metrics: %s", response.Status)
	}

	return read(response.Body)
}
