// Package kafka holds Trunkline's Kafka client: topics, a producer, a reader of
// one partition, and consumer groups. It hides the details of the protocol and
// of kafka-go; its users see records.
//
// kafka-go dials, negotiates, keeps connections, and runs the group protocol.
// The requests under load (produce, fetch) are encoded and decoded here, their
// record batches in package wire: kafka-go's encoder cannot write idempotent
// batches, and its readers do not verify checksums or are too slow. Requests whose
// responses must not be cached (metadata, offsets) and those of the login use
// franz-go's kmsg.
//
// It reports every loss: a log that does not continue at a reader's offset
// (records deleted, truncated or damaged, or the topic recreated) is a GapError;
// a write without a response is an ErrOutcomeUnknown. It does not interpret
// records.
//
// Records that wait travel together. A Read returns all that has arrived, however many
// responses brought it; small batches that come while a produce request is on its way
// share the next one (produceQueue). Both cost a record that comes alone nothing.
//
// Goroutines: the transport has one for each connection and broker, ended by Cluster.Close; a
// Producer has one for each partition with records to send and one for each request that several
// partitions share, ended by Producer.Close; a Reader has none; RunGroup has one for each
// assigned partition and a few for the membership, all ended when it returns, except a leave
// request to a coordinator that does not answer, which has a timeout. All readers of a broker
// share one or two goroutines, which end with the last Close, after they have closed their
// session at the broker (see fetcher); Cluster.Close waits up to a second for them. Look-ups of
// offsets and leaders have one while any is in progress.
//
// Bounds: a Producer holds ProducerConfig.MaxBytes of unacknowledged records; then
// Produce waits. A Reader holds the records last returned and up to 2 MiB of
// prefetched ones, or one larger batch; then fetches omit its partition. A
// compressed batch is decompressed in pieces of 1 MiB or one record.
//
// Lock order: Producer.mu, then recordBuffer.mu; fetchers.mu, then fetcher.mu;
// lookupBatcher.mu, then that of its rounds. All other locks, also Producer.queuesMu and
// produceQueue.mu, are held alone.
//
// # Files
//
// Read cluster.go, then reader.go and producer.go, the two things that others use most; decision
// 0003 says why they are our own.
//
//   - cluster.go, settings.go, metrics.go, broker_errors.go, request_retries.go: a cluster, settings,
//     metrics, kinds of errors, repeats
//   - connect.go, request_exchange.go, broker_clock.go: connections, requests, the clocks of brokers
//   - metadata.go, partition_leaders.go, topics.go, topic_check.go, topic_retention.go, partitioner.go,
//     partition_of_key.go: topics and leaders; making and checking topics; which partition a key has
//   - log_reader_interfaces.go: what consumers read topics by
//   - record.go, topic_id.go, log_position.go, log_gap.go, offset_lookup.go, lookup_batcher.go: records,
//     positions in the log, gaps in it, looking offsets up
//   - reader.go, reader_subscription.go, reader_position_check.go, reader_retry.go, epoch_history.go, broker_fetcher.go,
//     fetch_subscription.go, fetch_protocol.go, fetch_shared_buffer.go, damaged_batch.go, scan_partition.go:
//     reading: a reader, the fetcher of a broker that all readers share, the protocol, buffers, damage,
//     ranges
//   - producer.go, producer_record_buffer.go, broker_produce_queue.go, produce_send.go, split_batch.go,
//     produce_outcome.go, produce_protocol.go: producing: the producer, a partition's buffer, a broker's
//     queue, a batch on its way
//   - group.go, group_generation.go, member_liveness.go: consumer groups
package kafka
