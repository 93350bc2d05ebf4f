package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"trunkline/cmd/trunkline-bench/load"
	"trunkline/event"
	"trunkline/internal/kafka"
)

// deadLetters counts the dead letters of a run.
type deadLetters struct {
	run string

	mu     sync.Mutex
	kinds  map[string]map[string]uint64 // by topic, by kind
	probes map[string]uint64            // of probes: servers may not have the accounts yet
}

func newDeadLetters(run string) *deadLetters {
	return &deadLetters{run: run, kinds: map[string]map[string]uint64{}, probes: map[string]uint64{}}
}

func (d *deadLetters) add(record *kafka.Record) {
	stamp, ok := load.ReadStamp(d.run, record.Value)
	if !ok {
		return
	}

	topic, kind := string(record.Header(event.HeaderOrigTopic)), string(record.Header(event.HeaderErrorKind))
	d.mu.Lock()
	defer d.mu.Unlock()

	// A probe's dead letter is no fault of the run: it shows that an account is not known yet.
	if stamp.Seq == 0 {
		d.probes[kind]++
		return
	}
	if d.kinds[topic] == nil {
		d.kinds[topic] = map[string]uint64{}
	}

	d.kinds[topic][kind]++
}

// byKind returns the number of dead letters of a raw topic, by kind.
func (d *deadLetters) byKind(topic string) map[string]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.kinds[topic])
}

func sumCounts(counts map[string]uint64) (n uint64) {
	for _, count := range counts {
		n += count
	}
	return n
}

// probesByKind returns the number of dead letters of probes, by kind.
func (d *deadLetters) probesByKind() map[string]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.probes)
}

// formatKinds formats counts by kind.
func formatKinds(counts map[string]uint64) string {
	if len(counts) == 0 {
		return "none"
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(parts, ", ")
}
