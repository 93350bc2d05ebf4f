package kafka

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

	logAppendTime = "LogAppendTime"
)
