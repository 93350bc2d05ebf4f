// Package fanout is the events channel: it follows the normalized topic and
// sends each message to every subscriber whose token admits it, over WebSocket
// or server-sent events.
//
// It does not parse messages: matching uses record headers, and a client gets
// the record's value byte for byte. It keeps no state that must survive a crash:
// a subscriber that resumes finds everything in Kafka, on any node. It refuses
// requests without a valid token (401), of other origins (403), over a connection
// limit (429), with a position that the log no longer has (410), and all while it
// drains (503), before anything is written.
//
// # Data flow
//
// A goroutine for each partition that a subscriber of this node may have events in
// (account_partitions.go, subscriber_partitions.go) reads a batch of records, builds each
// message's WebSocket frame once (frame_batch.go), keeps the batch in a bounded ring,
// finds the matching subscribers in the index and adds a reference to their
// queues. Subscribers whose queue was empty are handed to a few writers, which
// send what waits for a connection in one write. Queues, writers and connections
// are package conn, which knows no events. A subscriber that resumes is fed by a
// replay of its own, from shared chunks of Kafka (kafka_history.go) and from the ring,
// merged by id over all partitions, until it has reached the live position of
// every partition; then it becomes live in all partitions at once (replay.go).
//
// # Parts
//
// Fanout admits subscribers and delivers to them; partitionStream and replay are its
// two sources of events. The other parts have only the dependencies that they name and
// do not refer to Fanout: index, followedPartitions (which streams run),
// accountPartitions (which partitions have an account's events), resumer (where a
// client that resumes continues), kafkaHistory, snapshots, cluster (what this node and
// the others tell each other of their connections, and their leases), explanations,
// webSocket and eventStream, goroutineGroup. cluster, followedPartitions,
// accountPartitions and webSocket call it through an interface of two to four methods
// that they declare.
//
// # Goroutines and what stops them
//
//   - one stream for each partition while a subscriber follows it: followedPartitions;
//   - one that reads cc.accounts and one that counts partitions: the end of Run's
//     context; one for each subscriber that joins partitions: when it is live;
//   - GOMAXPROCS writers, one sweeper (pings, silence, expiry, cursors, the
//     bound of all queues), one for permissions, one for presence, one that
//     rebalances: the end of Run's context;
//   - one that reads cc.state for each partition that recent snapshots needed, and one
//     that starts and stops these (state_views.go): the end of Run's context;
//   - one that answers other nodes' questions (explain.go): the end of Run's context;
//   - one reader for each WebSocket, and one waiter while its socket is full:
//     the end of the connection;
//   - one replay for each subscriber that is behind: when it is live or has disconnected.
//
// # Bounds
//
// All are in bytes of memory. A subscriber's queue: above Config.QueueBytes a
// subscriber with a full socket is disconnected with 4008; if it only waits for a
// writer, its stream waits too. The queues of a node: above Config.NodeQueueBytes the
// subscribers with the longest queues are disconnected. The ring: Config.RingBytes.
// History: all chunks together are bounded, and dropped when no replay runs; a waiting
// replay holds none. Snapshots: Config.SnapshotBytes; above it there are no snapshots
// for stateLinger. Connections that ended, kept for explanations: maxPastConnections.
// Busy writers slow the streams and lose nothing: Kafka is the buffer.
//
// # Lock order
//
// index.mu, traces.mu, subscriber.mu, conn's rawConn.mu; each may be skipped, none may be
// taken in another order. partitionStream.mu, accountPartitions.mu, joinLag.mu and
// followedPartitions.mu are taken after these, and none of them after another;
// pastConnections.mu is held alone. webSocket.handshake is taken before rawConn.mu only.
//
// # Files
//
// Read subscriber.go and frame_batch.go, then partition_stream.go for live events and replay.go for those of before.
//
//   - fanout.go, config.go, settings.go, metrics.go, goroutine_group.go, subscriber_sweep.go,
//     permission_changes.go: what runs; settings, metrics, the goroutines, what looks after all subscribers from
//     time to time, and when permissions change
//   - subscribe_request.go, shared_principals.go, connection_limits.go, connection_limits_redis.go,
//     disconnect_reasons.go: a request for the channel until it is a subscriber; limits; close codes
//   - subscriber_filter.go, subscriber_index.go, subscriber_set.go: who may have an event, and the
//     subscribers
//   - subscriber.go, connection_history.go, websocket.go, event_stream.go: a subscriber and its queue,
//     its past, its two transports
//   - event_frame.go, frame_batch.go, compressed_frame.go, delivery_trace.go: the frames of a batch of events,
//     and their spans
//   - kafka_log.go, followed_partitions.go, partition_stream.go, ring.go, kafka_history.go: the log: which
//     partitions are read, reading one, and what is kept of it in memory
//   - subscriber_partitions.go, join_partitions.go, account_partitions.go, newest_account_offsets.go,
//     partition_set.go: which partitions a subscriber may have events in, and following more of them
//   - resume.go, resume_rewind.go, cursor.go, offset_lookup.go, log_id.go, delivery_lag.go,
//     replay.go, replay_merge_partitions.go, replay_load_frames.go, replay_deliver.go: where a resume starts, and the
//     replay from there
//   - snapshot.go, snapshot_merge.go, state_queries.go, state_views.go, today_figures.go: snapshots, the entries of an
//     account, and the state that both are made of
//   - node_presence.go, node_presence_redis.go, rebalance_connections.go: the other nodes, and connections
//     that move to them
//   - explain.go, explain_peers_redis.go: why an event did or did not reach a client, and asking the other
//     nodes
package fanout
