package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// deadLetters counts those of a run.
type deadLetters struct {
	run []byte

	mu    sync.Mutex
	kinds map[string]map[string]uint64 // by topic, by kind
}

func newDeadLetters(run string) *deadLetters {
	return &deadLetters{run: []byte(run + "."), kinds: map[string]map[string]uint64{}} // as a stamp has it
}

func (d *deadLetters) see(record *kafka.Record) {
	if !bytes.Contains(record.Value, d.run) {
		return
	}
	topic, kind := string(record.Header(event.HeaderOrigTopic)), string(record.Header(event.HeaderErrorKind))
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kinds[topic] == nil {
		d.kinds[topic] = map[string]uint64{}
	}
	d.kinds[topic][kind]++
}

// of is how many there are of a raw topic's records, by kind.
func (d *deadLetters) of(topic string) map[string]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.kinds[topic])
}

func sum(counts map[string]uint64) (n uint64) {
	for _, count := range counts {
		n += count
	}
	return n
}

// forget begins anew.
func (d *deadLetters) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.kinds)
}

// kinds lists counts by kind.
func kinds(counts map[string]uint64) string {
	if len(counts) == 0 {
		return "none"
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
	}
	return strings.Join(parts, ", ")
}
