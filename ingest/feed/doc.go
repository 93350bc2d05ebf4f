// Package feed reads the live events of phone platforms and stores them in Kafka:
// connection → spool on disk → Kafka → checkpoint. Below it, one folder for each
// kind of platform implements Platform; this package depends on none of them.
//
// # Data flow
//
// A session reads without waiting for Kafka: each event is appended to the feed's
// spool, a sender produces the spool in order, and the checkpoint moves when Kafka
// has acknowledged. A full spool stops reading; nothing in it is dropped.
//
// # Resync
//
// After each connect, and after a hole in a platform's sequence, the feed asks the
// platform for its agents, calls and devices, waits until the state (cc.state) has
// everything that was read before the request, compares both, and stores one resync
// record for each difference. Objects with events meanwhile are left for the next
// round. Events go on being sent; only while the differences are stored are they held.
//
// # Leases
//
// A feed runs on as many nodes as its redundancy says. A node holds a lease while
// it runs a feed, and stops reading when it could not renew it; where the platform
// numbers its events it continues while the database is unavailable, because a second
// copy of an event is dropped later. The node with the first lease resyncs. A
// platform without numbers is read by one node, whatever its redundancy. What is in
// a node's spool is sent whether or not the node has the lease.
//
// # Repeats
//
// Each record has an identity: the platform's, else one of the spool's own run. A
// record that Kafka got twice, because the process was killed before its checkpoint
// or because two nodes read, becomes one message in the normalizer.
package feed
