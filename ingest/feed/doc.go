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
// platform for its agents, calls and devices, waits meanwhile until the state (cc.state)
// has everything that was read before the request, compares both, and stores one resync
// record for each difference. Objects with events meanwhile are compared in a further
// round, and so are calls that the platform does not have any more: at most
// resyncRounds, because events tell the state of an object that changes all the time.
// Events go on being sent; only while the differences are stored are they held.
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
// # Order of two nodes
//
// Each of two nodes sends the events that it reads in their order, and the first copy
// of each counts; so all are in order while the events of one node begin no later
// than where the other one is. A node that starts or connects therefore holds the
// events from there on, and begins to send and to resync when each other node that is
// alive has sent
//
//   - the first of them, or a later event of the same run of the platform; or
//   - all that it had read peerDelay after it, while no earlier event waits there:
//     the other node connected later, or nothing happens on the platform.
//
// Nodes learn this from each other's status in the database. After orderTimeout the
// events are sent anyway. What a node has left in its spool when it died is sent when
// it returns: late, where the other node did not read it.
//
// # Repeats
//
// Each record has an identity: the platform's, else one of the spool's own run. A
// record that Kafka got twice, because the process was killed before its checkpoint
// or because two nodes read, becomes one message in the normalizer.
package feed
