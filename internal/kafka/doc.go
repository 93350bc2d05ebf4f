// Package kafka is the one place that talks to Kafka: topics, a producer, a
// reader of one partition, and consumer groups. Every sharp edge of the
// protocol and of kafka-go is dealt with here; rooms see records.
//
// kafka-go dials, negotiates, authenticates, keeps connections, and runs the
// group protocol. The requests that carry the load (produce, fetch) and those
// whose answers must be fresh (metadata, offsets) are written and read here:
// kafka-go's own encoder cannot write idempotent batches and its readers do
// not check what they read, or cost too much.
//
// It refuses to hide loss: a log that does not go on where a reader is (records
// deleted, cut off, damaged, or the topic created again) is a GapError, a write
// whose answer never came ErrOutcomeUnknown. It
// knows nothing of what records mean.
//
// Goroutines: the transport has one for each connection and broker, ended by
// Cluster.Close; a Producer has one for each partition that has something to
// send, ended by Producer.Close; a Reader has none; RunGroup has one for each
// assigned partition and a few for the membership, all ended when it returns, but for a
// farewell to a coordinator that does not answer, which gives up by itself. All
// readers of a broker share one or two goroutines, which end with the last
// Close (see fetchGroup); questions about offsets and leaders have one while any
// is asked.
//
// When it is full: a Producer holds ProducerConfig.MaxBytes of records that
// wait for their acknowledgement; then Produce waits, or answers unavailable,
// as configured. A Reader holds what it hands out and up to 2 MiB that was
// fetched ahead, or one larger batch; then its partition is left out of fetches.
// A compressed batch is unpacked piece by piece, 1 MiB or one record at a time.
//
// Lock order: Producer.mu, then recordBuffer.mu; fetchers.mu, then fetchGroup.mu. All
// others are taken alone.
package kafka
