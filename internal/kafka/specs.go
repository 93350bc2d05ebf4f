package kafka

import (
	"strconv"

	"trunkline/event"
)

// TopicSpec describes a topic to create and check.
type TopicSpec struct {
	Name       string // base name
	Partitions int    // when it is created; an existing topic keeps its own
	Follows    string // topic whose partition n becomes this one's partition n: it has at least as many
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

// AuditSpec is the topic of the audit log. It has one partition: its records are a
// chain.
func AuditSpec() TopicSpec { return TopicSpec{Name: event.TopicAudit, Partitions: 1} }

// Specs are Trunkline's topics, made with the given number of partitions.
//
// Raw topics are stamped by the broker: ids come from those times. Normalized
// records carry the time of their id, which may run ahead of a clock that was
// set back, so the broker must not refuse it.
//
// The state and the figures are compacted, in small segments, since Kafka does not
// compact the segment it writes to and a consumer that takes over reads the whole
// partition; so are the accounts' partitions, which every fanout node reads whole. Not before ten minutes: until then what writers that overlapped have
// written can be distinguished (see packages event/state and stats).
func Specs(partitions int) []TopicSpec {
	size := strconv.Itoa(MaxRecordBytes)
	raw := map[string]string{configMaxBytes: size, configTimestampType: logAppendTime}
	made := map[string]string{configMaxBytes: size, configMaxAhead: "9223372036854775807"}
	folded := map[string]string{
		configMaxBytes: size, configCleanupPolicy: compact, configSegmentBytes: "16777216", configSegmentTime: "3600000",
		configDirtyRatio: "0.2", configCompactAfter: "600000",
	}
	return []TopicSpec{
		{Name: event.TopicRaw, Partitions: partitions, Config: raw},
		{Name: event.TopicCDRRaw, Partitions: partitions, Config: raw},
		{Name: event.TopicEvents, Partitions: partitions, Follows: event.TopicRaw, Config: made},
		{Name: event.TopicState, Partitions: partitions, Follows: event.TopicEvents, Config: folded},
		{Name: event.TopicStats, Partitions: partitions, Follows: event.TopicEvents, Config: folded},
		{Name: event.TopicQueues, Partitions: 1, Config: folded},
		{Name: event.TopicAccounts, Partitions: 1, Config: folded},
		{Name: event.TopicCDR, Partitions: partitions, Follows: event.TopicCDRRaw, Config: made},
		{Name: event.TopicDead, Partitions: partitions, Config: made},
	}
}
