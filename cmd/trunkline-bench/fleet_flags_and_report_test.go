package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/trunkline-bench/load"
)

func TestFleetNamesWhatItCannotRunWith(t *testing.T) {
	t.Parallel()
	w := newRunner(t)
	for _, test := range []struct{ want, args string }{
		{"--nodes", "--nodes 0"}, {"--nodes", "--nodes 33"},
		{"--sockets", "--sockets 0"}, {"--sockets", "--accounts 20001 --sockets 1"},
		{"--partitions", "--partitions 1025"}, {"--rate", "--rate 0"}, {"--rate", "--rate NaN"},
		{"--size", "--size 10"}, {"--duration", "--duration 0s"}, {"--warmup", "--warmup -1s"},
		{"database.url", ""},
	} {
		code, _, errs := w.Run(append([]string{"fleet"}, strings.Fields(test.args)...)...)
		if code != cli.ExitUsage || !strings.Contains(errs, test.want) {
			t.Errorf("fleet %s: exit code %d, %q does not name %s", test.args, code, errs, test.want)
		}
	}
}

func TestFleetReportsEachProcess(t *testing.T) {
	t.Parallel()
	processes := []*fleetProcess{{name: "normalizer"}, {name: "node-1"}, {name: "node-2"}, {name: "balancer"}}
	before := make([]processUsage, len(processes))
	cpu := func(d time.Duration) load.Usage { return load.Usage{CPU: d} }
	after := []processUsage{
		{Usage: cpu(time.Second), readBytes: 1000, writtenBytes: 1000, producedBytes: 1000},
		{Usage: cpu(2 * time.Second), readBytes: 700, consumedBytes: 700, deliveries: 3000, followedPartitions: 5},
		{Usage: cpu(time.Second), readBytes: 400, consumedBytes: 400, deliveries: 1000, followedPartitions: 3},
		{Usage: cpu(time.Second)},
	}
	run := fanoutReport{Published: 1000, Deliveries: 4000}
	side := fleetSide{Nodes: 2, Run: run}
	side.setUsage(processes, before, after, &run, 8000)

	if side.NodesCPUPerDelivery != 750 || side.AllCPUPerDelivery != 1250 || side.ToNodesRatio != 1.1 {
		t.Errorf("nodes %v, all %v a delivery, events %v times", side.NodesCPUPerDelivery, side.AllCPUPerDelivery,
			side.ToNodesRatio)
	}
	if node := side.Processes[1]; node.CPUPerEvent != 2000 || node.BytesOut != 6000 ||
		node.BytesPerDelivery != 6700./4000 || node.PartitionsFollowed != 5 {
		t.Errorf("the first node: %+v", node)
	}

	report := fleetReport{One: side, Fleet: side}
	report.setRatio()
	var out bytes.Buffer
	if err := report.write(&out); err != nil || report.NodesCPURatio != 1 || report.fault() != nil {
		t.Errorf("ratio %v, %v, %v", report.NodesCPURatio, err, report.fault())
	}

	for _, want := range []string{"normalizer", "node-2", "balancer", "1.10 times", "2 nodes 1.00 times one"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table has no %q:\n%s", want, &out)
		}
	}

	report.Fleet.Run.Lost = 1
	if report.fault() == nil {
		t.Error("a lost event is no fault")
	}
}
