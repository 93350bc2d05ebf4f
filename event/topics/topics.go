// Package topics specifies Trunkline's topics: partitions, retention and compaction. Package
// internal/kafka creates and checks them.
package topics

import (
	"strconv"

	"trunkline/event"
)

// Audit returns the topic of the audit log. It has one partition, since its
// records form a hash chain.
func Audit() Spec { return Spec{Name: event.TopicAudit, Partitions: 1} }

// All returns Trunkline's topics, except that of the audit log, with the given number of partitions.
//
// The broker assigns the timestamps of raw topics: ids are made from them. Normalized
// records have the time of their id, which may be ahead of a clock that was set back,
// so the broker must not reject it.
//
// The state and the figures are compacted, in small segments: Kafka does not compact
// the active segment, and a consumer that takes over reads the whole partition. So are
// the accounts' partitions, which every fanout node reads completely. Compaction
// starts after ten minutes: before that, consumers can distinguish the records of
// overlapping writers (see packages event/state and stats).
func All(partitions int) []Spec {
	size := strconv.Itoa(MaxRecordBytes)
	raw := map[string]string{"max.message.bytes": size, "message.timestamp.type": "LogAppendTime"}
	normalized := map[string]string{"max.message.bytes": size, "message.timestamp.after.max.ms": "9223372036854775807"}
	compacted := map[string]string{
		"max.message.bytes": size, "cleanup.policy": "compact", "segment.bytes": "16777216", "segment.ms": "3600000",
		"min.cleanable.dirty.ratio": "0.2", "min.compaction.lag.ms": "600000",
	}

	return []Spec{
		{Name: event.TopicRaw, Partitions: partitions, Config: raw},
		{Name: event.TopicCDRRaw, Partitions: partitions, Config: raw},
		{Name: event.TopicEvents, Partitions: partitions, Follows: event.TopicRaw, Config: normalized},
		{Name: event.TopicState, Partitions: partitions, Follows: event.TopicEvents, Config: compacted},
		{Name: event.TopicStats, Partitions: partitions, Follows: event.TopicEvents, Config: compacted},
		{Name: event.TopicQueues, Partitions: 1, Config: compacted},
		{Name: event.TopicAccounts, Partitions: 1, Config: compacted},
		{Name: event.TopicCDR, Partitions: partitions, Follows: event.TopicCDRRaw, Config: normalized},
		{Name: event.TopicDead, Partitions: partitions, Config: normalized},
	}
}

// Names returns the names of All.
func Names() (names []string) {
	for _, spec := range All(0) {
		names = append(names, spec.Name)
	}
	return names
}
