package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// goBenchmark is a set of Go benchmarks. Both trees run it, unless it has its base within itself or measures what
// the earlier tree did not have.
type goBenchmark struct {
	folder, pattern, time string   // time: -test.benchtime
	units                 []string // the page shows the first that a benchmark reports; nil: all but memory
	alone                 bool     // this tree alone runs it
	goal                  string   // for readers of the page
	hidden                string   // a regular expression: figures that the page leaves out; "": none
}

func goBenchmarks() []goBenchmark {
	perOp := []string{"ns/op"}
	return []goBenchmark{
		{folder: "internal/kafka", pattern: "^Benchmark(Produce|Consume)$", time: "3x",
			units: []string{"cpu-ns/record", "cpu-s/million", "ns/op"}, goal: "franz-go ≤ 1, ≤ 1.2"},
		{folder: "internal/kafka", pattern: "^BenchmarkPartitions(AtRest|Live)$", time: "1x", alone: true,
			goal: "franz-go ≤ 1", hidden: `connections$|goroutines$|events/s$`},
		{folder: "internal/kafka", pattern: "^BenchmarkLatency$", time: "1000x", alone: true},
		{folder: "internal/kafka/wire", pattern: "^BenchmarkCompression$", time: "1500x", alone: true},
		{folder: "normalizer", pattern: "^BenchmarkNormalize$", time: "20000x", units: perOp},
		{folder: "normalizer", pattern: "^BenchmarkPipeline$", time: "3x", units: []string{"records/s"},
			goal: "100 k, copy ≥ 0.6"},
		{folder: "stats", pattern: "^Benchmark(Fold|FoldRecords)$", time: "1x",
			units: []string{"events/cpu-s", "ns/op"}, goal: "100 k"},
		{folder: "stats", pattern: "^Benchmark(Memory|Replay)$", time: "1x", alone: true,
			goal: "agent and call 1,000 B"},
		{folder: "stats/figures", pattern: "^BenchmarkReportOf400Days$", time: "3x", alone: true, goal: "500 ms"},
		{folder: "fanout", pattern: "^Benchmark(SkippedEvent|ReplayFromRing|FirstSnapshot|MatchingTen)$", time: "1s",
			units: perOp},
		{folder: "ingest", pattern: "^BenchmarkAccept", time: "1s", units: perOp},
		{folder: "ingest/feed/freeswitch", pattern: "^BenchmarkRead$", time: "1s", units: perOp},
		{folder: "ingest/feed/asterisk", pattern: "^BenchmarkRead$", time: "1s", units: perOp},
		{folder: "recording/envelope", pattern: "^BenchmarkAgainstBare$", time: "20x", units: []string{"ratio"},
			goal: "0.85, CBC 0.8"},
		{folder: "telephony/rtp", pattern: "^Benchmark(Relay|RecordedRelay)$", time: "1x", alone: true,
			goal: "0.15 %, recorded 0.2 % more", hidden: `packets/s$|ms-max$`},
		{folder: "aisession", pattern: "^Benchmark(Sessions|Dialects)$", time: "1x", alone: true,
			goal: "0.25 %, pcm16 0.6 %", hidden: `^Dialects/[^m]|peer-cpu-s$|p95$`},
		{folder: "cdrindex", pattern: "^BenchmarkIndexing$", time: "1x", alone: true, goal: "COPY ≥ 0.5"},
		{folder: "cdrindex", pattern: "^Benchmark(Reports|CSV)$", time: "1x", alone: true, goal: "p99 5 ms, page 50 ms"},
		{folder: "origination/pbx", pattern: "^BenchmarkSetup$", time: "1x", alone: true, goal: "50/s"},
		{folder: "origination", pattern: "^BenchmarkOriginate$", time: "500x", alone: true},
		{folder: "api", pattern: "^BenchmarkClickToCall$", time: "5000x", alone: true, goal: "p99 50 ms"},
		{folder: "e2e", pattern: "^BenchmarkRecordingEncryption$", time: "2000x", alone: true,
			goal: "5,000/s, put 500/s, p99 20 ms"},
		{folder: "e2e", pattern: "^BenchmarkIngestToSubscriber$", time: "5000x", alone: true,
			goal: "p50 5, p99 25 ms, real 40 ms"},
	}
}

func (g goBenchmark) builds() []string {
	if g.alone {
		return []string{ours}
	}
	return []string{ours, old}
}

// buildTests builds the test program of a folder of a tree; "" if the tree has no such folder.
func (m *machine) buildTests(ctx context.Context, tree, build, folder string) (program string, err error) {
	_, err = os.Stat(filepath.Join(tree, folder))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}

	program = filepath.Join(m.work, build+"-"+strings.ReplaceAll(folder, "/", "-")+".test")
	_, err = os.Stat(program)
	if err == nil {
		return program, nil
	}

	command := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, "./"+folder)
	command.Dir = tree
	out, err := command.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the tests of %s: %w: %s", folder, err, out)
	}

	return program, nil
}

// runGo runs benchmarks once and returns the results by benchmark and unit.
func (m *machine) runGo(ctx context.Context, tree, build string, b goBenchmark) (map[string]float64, error) {
	program, err := m.buildTests(ctx, tree, build, b.folder)
	if program == "" || err != nil {
		return nil, err
	}

	command := exec.CommandContext(ctx, program, "-test.run", "^$", "-test.bench", b.pattern, "-test.benchtime", b.time,
		"-test.timeout", benchTimeout.String())
	command.Dir = filepath.Join(tree, b.folder)
	out, err := command.CombinedOutput()
	results := parseGo(string(out), b.units)
	if err != nil && len(results) == 0 {
		return nil, fmt.Errorf("benchmarks of %s: %w: %s", b.folder, err, lastLines(string(out), 10))
	}

	return results, nil
}

// parseGo reads the lines of benchmarks: the name, the runs, then a number and its unit in turn. It
// keeps the first of units that a line has; without units, all but memory.
func parseGo(out string, units []string) map[string]float64 {
	results := map[string]float64{}
	lines := bufio.NewScanner(strings.NewReader(out))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}

		name := strings.TrimPrefix(words[0], "Benchmark")
		if dash := strings.LastIndexByte(name, '-'); dash > 0 {
			name = name[:dash] // the number of processors
		}

		found := map[string]float64{}
		for i := 2; i+1 < len(words); i += 2 {
			value, err := strconv.ParseFloat(words[i], 64)
			if err == nil {
				found[words[i+1]] = value
			}
		}

		for unit, value := range chosen(found, units) {
			results[name+", "+unit] = value
		}
	}
	return results
}

// chosen returns the first of units that found has, or all but memory and the time of one run.
func chosen(found map[string]float64, units []string) map[string]float64 {
	for _, unit := range units {
		if value, ok := found[unit]; ok {
			return map[string]float64{unit: value}
		}
	}

	kept := map[string]float64{}
	for unit, value := range found {
		if unit != "B/op" && unit != "allocs/op" && (unit != "ns/op" || len(found) == 1) {
			kept[unit] = value
		}
	}
	return kept
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
