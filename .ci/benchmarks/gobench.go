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

// goBenchmark is a set of Go benchmarks that both trees run, each built once.
type goBenchmark struct {
	folder, pattern, time string
	units                 []string // the results that the page shows, in this order
}

func goBenchmarks() []goBenchmark {
	return []goBenchmark{
		{"internal/kafka", "^Benchmark(Produce|Consume)$", "20000x", []string{"ns/op", "cpu-ns/record", "cpu-s/million"}},
		{"normalizer", "^BenchmarkNormalize$", "20000x", []string{"ns/op"}},
		{"normalizer", "^BenchmarkPipeline$", "1x", []string{"ns/op"}},
		{"stats", "^Benchmark(Fold|FoldRecords)$", "1x", []string{"events/cpu-s", "ns/op"}},
		{"fanout", "^Benchmark(SkippedEvent|ReplayFromRing|FirstSnapshot|MatchingTen)$", "1s", []string{"ns/op"}},
		{"ingest", "^BenchmarkAccept", "1s", []string{"ns/op"}},
		{"ingest/feed/freeswitch", "^BenchmarkRead$", "1s", []string{"ns/op"}},
		{"ingest/feed/asterisk", "^BenchmarkRead$", "1s", []string{"ns/op"}},
		{"recording/envelope", "^BenchmarkAgainstBare$", "20x", []string{"ns/op"}},
		{"telephony/rtp", "^Benchmark(Relay|RecordedRelay)$", "1x", nil},
		{"aisession", "^Benchmark(Sessions|Dialects)$", "1x", nil},
		{"cdrindex", "^BenchmarkIndexing$", "1x", nil},
		{"origination/pbx", "^BenchmarkSetup$", "1x", nil},
		{"origination", "^BenchmarkOriginate$", "500x", []string{"ns/op"}},
	}
}

// test builds the test program of a folder of a tree; "" if the tree has no such folder.
func (m *machine) test(ctx context.Context, tree, build, folder string) (program string, err error) {
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
	program, err := m.test(ctx, tree, build, b.folder)
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
