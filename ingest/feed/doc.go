// Package feed reads the live events of phone platforms and stores them in Kafka:
// connection → spool on disk → Kafka → checkpoint. Below it, one folder for each
// kind of platform implements Platform; this package depends on none of them.
//
// # Data flow
//
// A session reads without waiting for Kafka: it appends each event to the feed's spool, a sender
// produces the spool's records in order, and the checkpoint advances when Kafka has acknowledged them.
// A full spool stops reading; nothing in it is dropped.
//
// # Resync
//
// After each connect, after a hole in a platform's sequence or in the spool, when the platform reports that
// something changed without an event, and every resyncInterval, the feed requests the platform's agents,
// calls and devices, waits meanwhile until the state (cc.state) includes everything that was read before
// the request, compares both, and stores one resync record for each difference. Objects with events
// during the comparison or shortly before it, and calls that the platform no longer has, are compared in
// further rounds, until none is open; the pauses grow to maxResyncPause. Events are sent during a resync;
// they are held only while the differences are stored.
//
// # Leases
//
// A feed runs on as many nodes as its redundancy says. A node holds a lease while it runs a feed, and
// stops reading if it cannot renew it. If the platform numbers its events, the node continues while the
// database is unavailable, because the normalizer drops a second copy of an event. The node with the
// first lease resyncs. A platform that does not number its events is read by one node, regardless of
// the redundancy. A node sends the records in its spool with or without a lease.
//
// # Order of two nodes
//
// Each of two nodes sends the events that it reads in their order, and the first copy of each counts.
// The order is correct if a node's first event is not after the other node's newest one. A node that
// starts or connects therefore holds its events, and begins to send and to resync when each other
// running node has sent
//
//   - the first of the held events, or a later event of the same run of the platform; or
//   - everything that it had read peerDelay after the first held event, and holds no earlier event
//     itself: the other node connected later, or the platform is idle.
//
// Nodes read this from each other's status in the database. After orderTimeout the events are sent in
// any case. Records in the spool of a node that died are sent when it restarts; those that the other
// node did not read are late.
//
// # Repeats
//
// Each record has an identity: the platform's, else one of the spool's own run. The normalizer makes
// one message of a record that Kafka has twice, because the process was killed before its checkpoint or
// because two nodes read the platform.
//
// # Files
//
// Read platform.go, what a platform is for this package, then runner.go.
//
//   - platform.go, platform_constructor.go, settings.go, metrics.go: a platform, its session and events;
//     settings and metrics
//   - service.go, runner.go: all feeds, and one: the loop of its sessions
//   - event_account.go: the account of an event
//   - spool.go, spool_read.go, spool_record.go, memory_queue.go: events until Kafka has them: on
//     disk, or in the memory of a platform that keeps them itself
//   - sender.go, kafka_output.go: from there to Kafka
//   - feed_lease.go, hold_for_peers.go, lease_and_status_sql.go, status.go, status_counter.go: which node reads
//     a platform, two that read the same, and the status
//   - resync_rounds.go, resync_compare.go, resync_compare_agent.go, resync_compare_call.go,
//     resync_compare_device.go, state_reader.go: corrections: the platform's own view beside the state
//   - check_platform.go: a try of a platform, which stores nothing
//   - agent_and_call_commands.go, command_checks.go: actions on agents and calls, sent over the platform's session,
//     and which of them are not sent
package feed
