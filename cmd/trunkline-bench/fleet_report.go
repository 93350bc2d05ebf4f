package main

import (
	"fmt"
	"io"
	"strings"

	"trunkline/cmd/internal/cli"
)

// fleetReport is the result of a run. The JSON names are for scripts and do not
// change.
type fleetReport struct {
	Accounts    int     `json:"accounts"`
	Sockets     int     `json:"sockets_per_account"`
	Rate        float64 `json:"rate"`
	EventBytes  int     `json:"event_bytes"`
	Partitions  int     `json:"partitions"`
	LoadAverage float64 `json:"load_average"` // of the machine, 1 minute, at the end

	One   fleetSide `json:"one"`
	Fleet fleetSide `json:"fleet"`
	// CPU of all nodes for a delivery, the fleet's divided by that of one node.
	NodesCPURatio float64 `json:"nodes_cpu_ratio,omitempty"`
	Interrupted   bool    `json:"interrupted"`
}

// fleetSide is the measurement of one number of nodes.
type fleetSide struct {
	Nodes     int          `json:"nodes"`
	Run       fanoutReport `json:"run"`
	Processes []fleetUsage `json:"processes"`

	NodesCPUPerDelivery float64 `json:"nodes_cpu_us_per_delivery"`
	AllCPUPerDelivery   float64 `json:"all_cpu_us_per_delivery"`
	StoredBytes         float64 `json:"events_bytes_stored"`    // of cc.evt, produced by the normalizer
	ToNodesBytes        float64 `json:"events_bytes_to_fanout"` // of cc.evt, read by all nodes
	ToNodesRatio        float64 `json:"events_bytes_to_fanout_ratio"`
}

// fleetUsage is the usage of a process during the measurement.
type fleetUsage struct {
	Name               string  `json:"name"`
	CPUSeconds         float64 `json:"cpu_seconds"`
	CPUPerEvent        float64 `json:"cpu_us_per_event"`
	CPUPerDelivery     float64 `json:"cpu_us_per_delivery"`
	BytesIn            float64 `json:"bytes_in"`
	BytesOut           float64 `json:"bytes_out"`
	BytesPerDelivery   float64 `json:"bytes_per_delivery"` // in and out
	RSSBytes           int64   `json:"rss_bytes"`
	PartitionsFollowed float64 `json:"partitions_followed,omitempty"`
}

// setUsage sets the usage of the processes between two readings; received is the number of bytes
// that subscribers received.
func (s *fleetSide) setUsage(processes []*fleetProcess, from, to []processUsage, run *fanoutReport, received float64) {
	events, deliveries := max(1, float64(run.Published)), max(1, float64(run.Deliveries))
	queued := 0.
	for i := range processes {
		queued += to[i].deliveries - from[i].deliveries
	}

	for i, p := range processes {
		used := (to[i].CPU - from[i].CPU).Seconds()
		d := fleetUsage{
			Name: p.name, CPUSeconds: used, CPUPerEvent: used / events * 1e6, CPUPerDelivery: used / deliveries * 1e6,
			BytesIn: to[i].readBytes - from[i].readBytes, BytesOut: to[i].writtenBytes - from[i].writtenBytes,
			RSSBytes: to[i].RSS, PartitionsFollowed: to[i].followedPartitions,
		}

		// The kernel does not count bytes sent to subscribers as written.
		switch {
		case p.name == "balancer":
			d.BytesIn, d.BytesOut = received, received
		case queued > 0:
			d.BytesOut += received * (to[i].deliveries - from[i].deliveries) / queued
		}

		d.BytesPerDelivery = (d.BytesIn + d.BytesOut) / deliveries
		s.Processes = append(s.Processes, d)
		s.AllCPUPerDelivery += d.CPUPerDelivery
		s.StoredBytes += to[i].producedBytes - from[i].producedBytes

		if strings.HasPrefix(p.name, "node-") {
			s.NodesCPUPerDelivery += d.CPUPerDelivery
			s.ToNodesBytes += to[i].consumedBytes - from[i].consumedBytes
		}
	}

	if s.StoredBytes > 0 {
		s.ToNodesRatio = s.ToNodesBytes / s.StoredBytes
	}
}

func (r *fleetReport) setRatio() {
	if r.One.NodesCPUPerDelivery > 0 {
		r.NodesCPURatio = r.Fleet.NodesCPUPerDelivery / r.One.NodesCPUPerDelivery
	}
}

func (r *fleetReport) write(w io.Writer) error {
	for _, s := range []*fleetSide{&r.One, &r.Fleet} {
		if len(s.Processes) == 0 {
			continue
		}

		fmt.Fprintf(w, "nodes %d, partitions %d %d accounts of %d sockets, %.0f events/s of %d bytes: %.0f deliveries/s, %s\n",
			s.Nodes, r.Partitions, r.Accounts, r.Sockets, s.Run.PublishedPerSecond, r.EventBytes,
			s.Run.DeliveriesPerSecond, s.Run.LatencyMS)
		var rows [][]string

		for _, p := range s.Processes {
			followed := ""
			if p.PartitionsFollowed > 0 {
				followed = fmt.Sprintf("%.0f", p.PartitionsFollowed)
			}

			rows = append(rows, []string{p.Name, fmt.Sprintf("%.2f", p.CPUSeconds), fmt.Sprintf("%.1f", p.CPUPerEvent),
				fmt.Sprintf("%.2f", p.CPUPerDelivery), fmt.Sprintf("%.1f", p.BytesIn/(1<<20)),
				fmt.Sprintf("%.1f", p.BytesOut/(1<<20)),
				fmt.Sprintf("%.0f", p.BytesPerDelivery), fmt.Sprintf("%.0f", mb(p.RSSBytes)), cli.OrDash(followed)})
		}

		header := []string{"PROCESS", "CPU s", "µs/EVENT", "µs/DELIVERY", "MB IN", "MB OUT", "BYTES/DELIVERY", "MB RSS",
			"PARTITIONS"}
		if err := cli.Table(w, header, rows); err != nil {
			return err
		}

		fmt.Fprintf(w, "nodes %.2f µs, all processes %.2f µs a delivery; of %.1f MB of events %.1f MB went to the nodes, %.2f times\n",
			s.NodesCPUPerDelivery, s.AllCPUPerDelivery, s.StoredBytes/(1<<20), s.ToNodesBytes/(1<<20), s.ToNodesRatio)
		fmt.Fprintf(w, "lost %d, duplicated %d, disordered %d; load generator %.2f s of CPU\n\n",
			s.Run.Lost, s.Run.Duplicated, s.Run.Disordered, s.Run.LoaderCPUSeconds)
	}

	_, err := fmt.Fprintf(w,
		"CPU of the nodes for a delivery: %d nodes %.2f times one; load average of the machine %.1f\n",
		r.Fleet.Nodes, r.NodesCPURatio, r.LoadAverage)

	return err
}

func (r *fleetReport) fault() error {
	for _, s := range []*fleetSide{&r.One, &r.Fleet} {
		if err := s.Run.fault(); err != nil {
			return err
		}
	}
	return nil
}
