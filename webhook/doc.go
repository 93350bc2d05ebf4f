// Package webhook sends the events of accounts to URLs that their administrators
// choose (docs/webhooks.md): signed as Standard Webhooks says, at least once, in order
// per account.
//
// If this is your first change, read service.go (what the API does), then partition.go
// (which events a webhook gets), send.go (how they are sent) and receiver.go (when).
//
// # How it works
//
// A consumer group gives each partition of cc.evt to one node. Its partitionWorker reads
// the partition, whatever the number of webhooks, and matches the records' headers with
// the filters of all webhooks. A webhook with something to get has a backlog there, with
// a goroutine that sends one request at a time: so an account's events, which are in one
// partition, stay in order. A backlog takes messages from the reader until maxQueued
// bytes wait; then it goes on in Kafka by itself until it has caught up. So a slow
// receiver delays nobody, and the reader never waits.
//
// # Positions
//
// webhook_partitions has for each partition the offset up to which it is delivered to
// all webhooks without a row in webhook_positions: those that are behind or paused have
// one. A checkpoint stores all of a partition in one transaction, once a second. After a
// crash the next owner goes on from there, so events of up to a second come again, with
// their ids. An owner that was replaced finds another version at its next checkpoint and
// begins anew. A new webhook has a row with the end of every partition; a retry from an
// event id writes the rows again, under the next number of webhooks.seek, and rows of
// earlier numbers are not written any more. A partition that is added later has no row
// and begins with its first record.
//
// # Failures
//
// All requests of a node to one webhook share a receiver: at most maxRequests at a time,
// after a failure one, after a growing wait. The failures are stored, so that another
// node goes on with them. The failure after the longest wait pauses the webhook, a
// status 410 does at once.
//
// # What it refuses
//
// URLs without TLS, and connections to addresses that are not public (package netguard);
// to follow redirects; to read more than maxAnswer of an answer; to drop an event: a
// webhook that is paused for longer than the topic's retention loses what Kafka deletes,
// which is logged and counted.
//
// # Goroutines, and when it is full
//
// Deliverer.Run has one that follows changes of webhooks, one for each partition that it
// is given, and one for each backlog that is sending; all end with its context, requests
// under way at most finishTime later. A backlog holds maxQueued bytes of messages, or one
// message; one that waits for long holds none. At most maxScans read older events at a
// time.
//
// # Locks
//
// partitionWorker.mu and receiver.mu are never held together.
package webhook
