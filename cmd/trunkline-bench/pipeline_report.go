package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load"
)

// pipelineReport is the result of a run. Scripts depend on the JSON names, which do not change.
type pipelineReport struct {
	Scenario       string  `json:"scenario"` // "pipeline"
	Through        string  `json:"through"`
	Transport      string  `json:"transport"`
	Accounts       int     `json:"accounts"`
	Rate           float64 `json:"rate"` // 0: unpaced
	Batch          int     `json:"batch"`
	Connections    int     `json:"connections"`
	EventBytes     int     `json:"event_bytes"`
	CallRecordRate float64 `json:"call_record_rate,omitempty"`

	MeasuredSeconds  float64        `json:"measured_seconds"`
	Events           flowReport     `json:"events"`
	CallRecords      *flowReport    `json:"call_records,omitempty"`
	Reports          *lookupReport  `json:"reports,omitempty"`
	DrainSeconds     float64        `json:"drain_seconds"`
	Climb            []pipelineStep `json:"climb,omitempty"`
	Usage            *windowUsage   `json:"server_usage,omitempty"`
	LoaderCPUSeconds float64        `json:"loader_cpu_seconds"`
	Interrupted      bool           `json:"interrupted"`
}

// flowReport holds the figures of events, or of call records.
type flowReport struct {
	Sent             uint64    `json:"sent"` // and acknowledged, within the measurement
	SentPerSecond    float64   `json:"sent_per_second"`
	AcknowledgedMS   latencies `json:"acknowledged_ms"` // of batches
	Records          uint64    `json:"records"`         // normalized records within the measurement
	RecordsPerSecond float64   `json:"records_per_second"`
	RecordBytes      float64   `json:"record_bytes,omitempty"`
	LatencyMS        latencies `json:"latency_ms"`   // from the batch's due time to the consumption of the record
	Backlog          int64     `json:"backlog"`      // not yet consumed at the end of the measurement
	BusyAnswers      uint64    `json:"busy_answers"` // 429 and 503, retried

	Lost        int64                       `json:"lost"` // missing, without a dead letter
	DeadLetters map[string]uint64           `json:"dead_letters"`
	WholeRun    load.PartitionTally         `json:"whole_run"`
	Partitions  map[int]load.PartitionTally `json:"partitions"` // -1: unknown
}

// pipelineStep is one rate of a climb.
type pipelineStep struct {
	Rate             float64   `json:"rate"`
	SentPerSecond    float64   `json:"sent_per_second"`
	RecordsPerSecond float64   `json:"records_per_second"`
	LatencyMS        latencies `json:"latency_ms"`
}

// fault returns an error unless every record was normalized once and in order. Repeats of the
// same source are no fault: consumers drop them.
func (r *pipelineReport) fault() error {
	for _, f := range []*flowReport{&r.Events, r.CallRecords} {
		if f != nil && (f.Lost > 0 || len(f.DeadLetters) > 0 ||
			f.WholeRun.Duplicated+f.WholeRun.Disordered+f.WholeRun.Strayed > 0) {
			return errPipelineFaults
		}
	}

	if r.Reports != nil && r.Reports.NotFound > 0 {
		return errPipelineFaults
	}

	return nil
}

// write writes the report as text.
func (r *pipelineReport) write(w io.Writer) error {
	offered := "as fast as it goes"
	if r.Rate > 0 {
		offered = fmt.Sprintf("%.0f events a second", r.Rate)
	}

	rows := [][]string{{"offered", fmt.Sprintf("%s of %d bytes through %s, %d a post, %d accounts, %d connections",
		offered, r.EventBytes, r.transportName(), r.Batch, r.Accounts, r.Connections)}}
	rows = append(rows, r.Events.rows("events", r.MeasuredSeconds)...)

	if r.CallRecords != nil {
		rows = append(rows, r.CallRecords.rows("call records", r.MeasuredSeconds)...)
	}
	if r.Reports != nil {
		rows = append(rows, []string{"in the reports", fmt.Sprintf("%d looked up, there after %v; %d not within %s",
			r.Reports.Found, r.Reports.FoundMS, r.Reports.NotFound, lookupTimeout)})
	}

	for _, step := range r.Climb {
		rows = append(rows, []string{"climb", fmt.Sprintf("%.0f events/s: %.0f in, %.0f out, %v",
			step.Rate, step.SentPerSecond, step.RecordsPerSecond, step.LatencyMS)})
	}

	rows = append(rows, r.Usage.rows("records")...)
	rows = append(rows, []string{"this loader", fmt.Sprintf("%.2f s CPU", r.LoaderCPUSeconds)})
	if r.Interrupted {
		rows = append(rows, []string{"interrupted", "these are the figures so far"})
	}

	return cli.Table(w, rows[0], rows[1:])
}

func (r *pipelineReport) transportName() string {
	if r.Through == throughHTTP {
		return r.Transport
	}
	return r.Through
}

func (f *flowReport) rows(what string, seconds float64) [][]string {
	rows := [][]string{
		{what + " in", fmt.Sprintf("%d in %.1f s, %.0f a second, acknowledged after %v; %d responses of overload",
			f.Sent, seconds, f.SentPerSecond, f.AcknowledgedMS, f.BusyAnswers)},
		{what + " out", fmt.Sprintf("%d records of %.0f bytes, %.0f a second; %d on their way at the end",
			f.Records, f.RecordBytes, f.RecordsPerSecond, f.Backlog)},
		{what + " latency", f.LatencyMS.String()},
		{what + " faults",
			fmt.Sprintf("%d lost, %d duplicated, %d disordered, %d in another partition; %d repeated from the same source; dead letters: %s",
				f.Lost, f.WholeRun.Duplicated, f.WholeRun.Disordered, f.WholeRun.Strayed, f.WholeRun.Repeated,
				formatKinds(f.DeadLetters))},
	}

	for _, partition := range slices.Sorted(maps.Keys(f.Partitions)) {
		p := f.Partitions[partition]
		if p.Missing == 0 && p.Repeated+p.Duplicated+p.Disordered+p.Strayed == 0 {
			continue // no fault
		}

		rows = append(rows, []string{"partition " + strconv.Itoa(partition), fmt.Sprintf(
			"%d records, %d missing, %d duplicated, %d disordered, %d of another partition, %d again from the same source",
			p.Records, p.Missing, p.Duplicated, p.Disordered, p.Strayed, p.Repeated)})
	}

	return rows
}
