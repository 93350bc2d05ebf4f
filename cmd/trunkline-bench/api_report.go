package main

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load/requests"
)

// apiReport is the result of a run. Scripts depend on the JSON names, which do not change.
type apiReport struct {
	Scenario    string         `json:"scenario"` // "api"
	Transport   string         `json:"transport"`
	Loop        string         `json:"loop"` // "open" or "closed"
	Rate        float64        `json:"rate"` // 0: unpaced
	Connections int            `json:"connections"`
	Mix         map[string]int `json:"mix"`
	Accounts    int            `json:"accounts"`
	Users       int            `json:"users,omitempty"` // users who placed calls

	MeasuredSeconds   float64 `json:"measured_seconds"`
	Requests          uint64  `json:"requests"` // completed or timed out within the measurement
	RequestsPerSecond float64 `json:"requests_per_second"`
	Failed            uint64  `json:"failed"`
	// due at the end of the measurement, waiting for a connection
	Behind uint64 `json:"behind"`
	// open loop: from the due time; closed loop: from sending
	LatencyMS        latencies                  `json:"latency_ms"`
	Operations       map[string]operationReport `json:"operations"`
	Climb            []apiStep                  `json:"climb,omitempty"`
	Usage            *windowUsage               `json:"server_usage,omitempty"`
	LoaderCPUSeconds float64                    `json:"loader_cpu_seconds"`
	Interrupted      bool                       `json:"interrupted"`
}

// operationReport holds the figures of one operation.
type operationReport struct {
	Requests      uint64            `json:"requests"`
	GoodPerSecond float64           `json:"good_per_second"` // expected responses; calls: accepted
	Failed        uint64            `json:"failed"`
	LatencyMS     latencies         `json:"latency_ms"`
	Statuses      map[int]uint64    `json:"statuses"`
	Errors        map[string]uint64 `json:"errors,omitempty"`
	Examples      map[string]string `json:"error_examples,omitempty"` // one response of each kind
}

// apiStep is one rate of a climb.
type apiStep struct {
	Rate              float64   `json:"rate"`
	RequestsPerSecond float64   `json:"requests_per_second"`
	Failed            uint64    `json:"failed"`
	Behind            uint64    `json:"behind"`
	LatencyMS         latencies `json:"latency_ms"`
}

func newOperationReport(t *requests.Tally, seconds float64) operationReport {
	o := operationReport{
		Requests: t.Requests, GoodPerSecond: float64(t.Requests-t.Failed) / seconds, Failed: t.Failed,
		LatencyMS: newLatencies(&t.Latency), Statuses: t.Statuses, Errors: t.Errors, Examples: map[string]string{},
	}
	for name := range t.Errors {
		o.Examples[name] = t.Examples[name]
	}
	return o
}

func (r *apiReport) fault() error {
	if r.Failed > 0 {
		return errRequestsFailed
	}
	return nil
}

// write writes the report as text.
func (r *apiReport) write(w io.Writer) error {
	offered := fmt.Sprintf("%.0f requests a second, due or not", r.Rate)
	if r.Rate == 0 {
		offered = "each connection sends its next request after a response"
	}
	rows := [][]string{
		{"offered", fmt.Sprintf("%s, %d connections, %s", offered, r.Connections, r.Transport)},
		{"answered", fmt.Sprintf("%d requests in %.1f s, %.0f a second, %d failed", r.Requests, r.MeasuredSeconds,
			r.RequestsPerSecond, r.Failed)},
		{"latency", r.LatencyMS.String()},
	}
	if r.Behind > 0 {
		rows = append(rows,
			[]string{"behind", fmt.Sprintf("%d were due at the end and waited for a connection", r.Behind)})
	}
	for _, name := range slices.Sorted(maps.Keys(r.Operations)) {
		rows = append(rows, r.Operations[name].rows(name)...)
	}
	for _, step := range r.Climb {
		rows = append(rows,
			[]string{"climb", fmt.Sprintf("%.0f requests/s: %.0f answered a second, %d failed, %d behind, %v",
				step.Rate, step.RequestsPerSecond, step.Failed, step.Behind, step.LatencyMS)})
	}
	rows = append(rows, r.Usage.rows("requests")...)
	rows = append(rows, []string{"this loader", fmt.Sprintf("%.2f s CPU", r.LoaderCPUSeconds)})
	if r.Interrupted {
		rows = append(rows, []string{"interrupted", "these are the figures so far"})
	}
	return cli.Table(w, rows[0], rows[1:])
}

func (o operationReport) rows(name string) [][]string {
	good := "good"
	if name == opCall {
		good = "accepted"
	}
	rows := [][]string{{name,
		fmt.Sprintf("%.0f %s a second, %v; %s", o.GoodPerSecond, good, o.LatencyMS, formatCounts(o.Statuses))}}
	for _, kind := range slices.Sorted(maps.Keys(o.Errors)) {
		rows = append(rows,
			[]string{"  " + kind, fmt.Sprintf("%d, such as: %s", o.Errors[kind], cli.Printable(o.Examples[kind]))})
	}
	return rows
}
