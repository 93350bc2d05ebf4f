package main

import (
	"fmt"
	"io"

	"trunkline/cmd/internal/cli"
)

// fanoutReport is the result of a run. Scripts depend on the JSON names, which do not change.
type fanoutReport struct {
	Server       string  `json:"server"` // "trunkline", "centrifugo", or "floor, " and the kind of the baseline
	Transport    string  `json:"transport"`
	Subscribers  int     `json:"subscribers"`
	Accounts     int     `json:"accounts"`
	Rate         float64 `json:"rate"`
	EventBytes   int     `json:"event_bytes"`
	MessageBytes float64 `json:"message_bytes,omitempty"`

	Connected            int            `json:"connected"`
	ConnectSeconds       float64        `json:"connect_seconds"`
	ConnectionsPerSecond float64        `json:"connections_per_second"`
	Refused              map[int]uint64 `json:"refused"` // by HTTP status; 0: no connection
	Closed               map[int]int    `json:"closed"`  // by close code
	Resumed              uint64         `json:"resumed"`
	Stalled              int            `json:"stalled"`
	StalledClosed        int            `json:"stalled_closed"`

	MeasuredSeconds     float64      `json:"measured_seconds"`
	Published           uint64       `json:"published"`
	PublishedPerSecond  float64      `json:"published_per_second"`
	PublishMS           latencies    `json:"publish_ms"`
	Deliveries          uint64       `json:"deliveries"`
	DeliveriesPerSecond float64      `json:"deliveries_per_second"`
	LatencyMS           latencies    `json:"latency_ms"`
	DrainSeconds        float64      `json:"drain_seconds"`
	Climb               []fanoutStep `json:"climb,omitempty"`
	Lost                int64        `json:"lost"`
	Duplicated          uint64       `json:"duplicated"`
	Disordered          uint64       `json:"disordered"`
	Repeated            uint64       `json:"repeated_after_resume"`
	Misbehaved          uint64       `json:"protocol_errors"`
	Foreign             uint64       `json:"foreign"`
	Usage               *serverUsage `json:"server_usage,omitempty"`
	LoaderCPUSeconds    float64      `json:"loader_cpu_seconds"`
	Interrupted         bool         `json:"interrupted"`
}

// fanoutStep is one rate of a climb.
type fanoutStep struct {
	Rate                float64   `json:"rate"`
	DeliveriesPerSecond float64   `json:"deliveries_per_second"`
	LatencyMS           latencies `json:"latency_ms"`
}

// serverUsage holds the CPU and memory of the server. Figures per connection are the increase
// over the server without connections.
type serverUsage struct {
	CPUSeconds                float64         `json:"cpu_seconds"`
	CPUSecondsPerMillion      float64         `json:"cpu_seconds_per_million_deliveries"`
	ProcessCPUSeconds         map[int]float64 `json:"cpu_seconds_by_process"` // by --server-pid
	RSSBytesBefore            int64           `json:"rss_bytes_before"`
	RSSBytesConnected         int64           `json:"rss_bytes_connected"`
	RSSBytesEnd               int64           `json:"rss_bytes_end"`
	RSSBytesPerConnection     float64         `json:"rss_bytes_per_connection"`
	GoBytesPerConnection      float64         `json:"go_bytes_per_connection,omitempty"` // heap and stacks in use
	ConnectCPUMicroseconds    float64         `json:"cpu_us_per_handshake"`
	IdleCPUMicrosecondsPerSec float64         `json:"idle_cpu_us_per_connection_second,omitempty"`
	BaseCPUMicrosecondsPerSec float64         `json:"base_cpu_us_per_second,omitempty"` // without connections
}

// fault returns an error unless every subscriber received every event once and in order.
func (r *fanoutReport) fault() error {
	if r.Lost != 0 || r.Duplicated != 0 || r.Disordered != 0 || r.Misbehaved != 0 {
		return errFanoutFaults
	}
	return nil
}

// write writes the report as text.
func (r *fanoutReport) write(w io.Writer) error {
	rows := [][]string{
		{"server", r.Server + ", " + r.Transport},
		{"connected", fmt.Sprintf("%d of %d in %.1f s, %.0f a second", r.Connected, r.Subscribers, r.ConnectSeconds,
			r.ConnectionsPerSecond)},
		{"published", fmt.Sprintf("%d events of %d bytes to %d accounts, %.0f a second", r.Published, r.EventBytes,
			r.Accounts, r.PublishedPerSecond)},
		{"acknowledged", "after " + r.PublishMS.String()},
		{"delivered", fmt.Sprintf("%d messages of %.0f bytes in %.1f s, %.0f a second", r.Deliveries, r.MessageBytes,
			r.MeasuredSeconds, r.DeliveriesPerSecond)},
		{"latency", r.LatencyMS.String()},
		{"faults", fmt.Sprintf("%d lost, %d duplicated, %d disordered, %d breaches of protocol", r.Lost, r.Duplicated,
			r.Disordered, r.Misbehaved)},
	}

	if r.Resumed > 0 {
		rows = append(rows, []string{"resumed", fmt.Sprintf("%d times, %d events repeated", r.Resumed, r.Repeated)})
	}
	if r.Stalled > 0 {
		rows = append(rows, []string{"stalled", fmt.Sprintf("%d, the server ended %d", r.Stalled, r.StalledClosed)})
	}
	if len(r.Closed)+len(r.Refused) > 0 {
		rows = append(rows,
			[]string{"ended", "closed " + formatCounts(r.Closed) + "; refused " + formatCounts(r.Refused)})
	}

	for _, step := range r.Climb {
		rows = append(rows,
			[]string{"climb",
				fmt.Sprintf("%.0f events/s: %.0f deliveries/s, %v", step.Rate, step.DeliveriesPerSecond,
					step.LatencyMS)})
	}

	rows = append(rows, r.Usage.rows()...)
	rows = append(rows, []string{"this loader", fmt.Sprintf("%.2f s CPU", r.LoaderCPUSeconds)})
	if r.Interrupted {
		rows = append(rows, []string{"interrupted", "these are the figures so far"})
	}

	return cli.Table(w, rows[0], rows[1:])
}

func (u *serverUsage) rows() [][]string {
	if u == nil {
		return nil
	}

	rows := [][]string{
		{"server CPU", fmt.Sprintf("%.2f s, %.2f s per million deliveries, %.0f µs per handshake", u.CPUSeconds,
			u.CPUSecondsPerMillion, u.ConnectCPUMicroseconds)},
		{"server memory",
			fmt.Sprintf("%.1f MB before, %.1f MB connected, %.1f MB at the end", mb(u.RSSBytesBefore),
				mb(u.RSSBytesConnected), mb(u.RSSBytesEnd))},
		{"per connection", fmt.Sprintf("%.1f KB resident", u.RSSBytesPerConnection/1024)},
	}
	last := &rows[len(rows)-1][1]

	if u.GoBytesPerConnection != 0 {
		*last += fmt.Sprintf(", %.1f KB of Go heap and stacks", u.GoBytesPerConnection/1024)
	}
	if u.IdleCPUMicrosecondsPerSec != 0 {
		*last += fmt.Sprintf(", %.1f µs CPU per idle second; without connections %.0f µs a second",
			u.IdleCPUMicrosecondsPerSec, u.BaseCPUMicrosecondsPerSec)
	}

	return rows
}
