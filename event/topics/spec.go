package topics

// MaxRecordBytes is the maximum size of a record, including its key, headers and
// framing: 1 MiB of value and room for the rest. Topics are created with this limit.
const MaxRecordBytes = 1<<20 + 256<<10

// Spec describes a topic to create and verify.
type Spec struct {
	Name       string // without the configured prefix
	Partitions int    // at its creation; an existing topic keeps its number
	// topic that this topic follows: it gets at least as many partitions, with the same partition
	// numbers
	Follows string
	Config  map[string]string // of Kafka
}
