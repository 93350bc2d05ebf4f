// Package kafka holds Trunkline's Kafka client: topics, a producer, a reader of
// one partition, and consumer groups. It hides the details of the protocol and
// of kafka-go; its users see records.
//
// kafka-go dials, negotiates, keeps connections, and runs the group protocol.
// The requests that carry the load (produce, fetch) are written and read here:
// kafka-go's own encoder cannot write idempotent batches and its readers do
// not check what they read, or cost too much. Those whose answers must be fresh
// (metadata, offsets) and those of the login are franz-go's kmsg.
//
// It reports every loss: a log that does not continue at a reader's offset
// (records deleted, cut off, damaged, or the topic created again) is a
// GapError, a write whose response never came is an ErrOutcomeUnknown. It does
// not interpret records.
//
// Goroutines: the transport has one for each connection and broker, ended by
// Cluster.Close; a Producer has one for each partition that has something to
// send, ended by Producer.Close; a Reader has none; RunGroup has one for each
// assigned partition and a few for the membership, all ended when it returns,
// except a leave request to a coordinator that does not answer, which has a
// timeout. All readers of a broker share one or two goroutines, which end with
// the last Close, after they have closed their session at the broker (see
// fetchGroup); Cluster.Close waits up to a second for them. Questions about
// offsets and leaders have one while any is asked.
//
// When it is full: a Producer holds ProducerConfig.MaxBytes of records that
// wait for their acknowledgement; then Produce waits. A Reader holds what it hands out and up to 2 MiB that was
// fetched ahead, or one larger batch; then its partition is left out of fetches.
// A compressed batch is unpacked piece by piece, 1 MiB or one record at a time.
//
// Lock order: Producer.mu, then recordBuffer.mu; fetchers.mu, then fetchGroup.mu. All
// others are taken alone.
package kafka
