package kafka

import (
	"strconv"

	"trunkline/event"
)

// TopicSpec describes a topic to create and verify.
type TopicSpec struct {
	Name       string // base name
	Partitions int    // at its creation; an existing topic keeps its number
	Follows    string // topic that this topic follows: it gets at least as many partitions, with the same partition numbers
	Config     map[string]string
}

const (
	configTimestampType   = "message.timestamp.type"
	configMaxBytes        = "max.message.bytes"
	configMinInSync       = "min.insync.replicas"
	configCleanupPolicy   = "cleanup.policy"
	configUncleanElection = "unclean.leader.election.enable"
	configMaxAhead        = "message.timestamp.after.max.ms"
	configSegmentBytes    = "segment.bytes"
	configSegmentTime     = "segment.ms"
	configDirtyRatio      = "min.cleanable.dirty.ratio"
	configCompactAfter    = "min.compaction.lag.ms"

	logAppendTime = "LogAppendTime"
	compact       = "compact"
)

// AuditSpec returns the topic of the audit log. It has one partition, since its
// records form a hash chain.
func AuditSpec() TopicSpec { return TopicSpec{Name: event.TopicAudit, Partitions: 1} }

// Specs returns Trunkline's topics with the given number of partitions.
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
func Specs(partitions int) []TopicSpec {
	size := strconv.Itoa(MaxRecordBytes)
	raw := map[string]string{configMaxBytes: size, configTimestampType: logAppendTime}
	normalized := map[string]string{configMaxBytes: size, configMaxAhead: "9223372036854775807"}
	compacted := map[string]string{
		configMaxBytes: size, configCleanupPolicy: compact, configSegmentBytes: "16777216", configSegmentTime: "3600000",
		configDirtyRatio: "0.2", configCompactAfter: "600000",
	}
	return []TopicSpec{
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
