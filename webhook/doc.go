// Package webhook sends the events of accounts to URLs that their administrators
// choose (docs/webhooks.md): signed as Standard Webhooks says, at least once, in order
// per account.
//
// If this is your first change, read manage_webhooks.go, then partition_worker.go,
// backlog_sender.go and receiver_limits.go.
//
// # How it works
//
// A consumer group assigns each partition of cc.evt to one node. Its partitionWorker reads
// the partition once for all webhooks and matches the records' headers with their filters.
// A webhook with events to send has a backlog there, with a goroutine that sends one
// request at a time: so an account's events, which are in one partition, stay in order. A
// backlog gets messages from the reader until its queue has maxQueuedBytes; then it reads
// from Kafka by itself until it has caught up. A slow receiver delays no other webhook,
// and the reader never waits.
//
// # Positions
//
// consume.Positions has the position of each partition. It counts for all webhooks that
// have no row in webhook_positions: those that are behind or paused have one. A checkpoint
// stores all positions of a partition in one transaction, once a second. After a crash
// the next worker of the partition resumes there, so events of up to a second are
// delivered again, with their ids. A worker that was replaced finds another version at its
// next checkpoint and starts again with takeOver. A new webhook has a row with the end of
// every partition. A retry from an event id replaces the rows and increments
// webhooks.seek, the generation of the positions; rows of earlier generations are not
// written any more. A partition that is added later has no row and begins with its first
// record.
//
// # Failures
//
// All requests of a node to one webhook share a receiver: at most maxConcurrentRequests at a time,
// after a failure one, after a growing wait. The failures are stored, so that another
// node continues the back-off. The failure after the longest wait pauses the webhook; a
// status 410 pauses it at once.
//
// # Restrictions
//
// URLs without TLS are refused, and connections to addresses that are not public (package
// netguard). Redirects are not followed, and at most maxResponseBytes of a response is read.
// No event is dropped, but a webhook that is paused for longer than the topic's retention
// loses the events that Kafka deletes; this is logged and counted.
//
// # Goroutines and bounds
//
// Deliverer.Run has one goroutine that follows changes of webhooks, one for each assigned
// partition, and one for each backlog that is sending; all end with its context, running
// requests at most finishTimeout later. A backlog holds maxQueuedBytes of messages, or
// one message; none while it waits longer than maxWaitWithQueue for its next attempt. At
// most maxConcurrentScans backlogs read from Kafka at a time.
//
// # Locks
//
// partitionWorker.mu and receiver.mu are never held together.
//
// # Files
//
// webhook.go has the words of the room: what a webhook is. Then read manage_webhooks.go and partition_worker.go.
//
//   - webhook.go, validate_config.go, secret.go: a webhook, the checks of its configuration, its signing
//     key
//   - service.go, settings.go, metrics.go: the service of the API, settings, metrics
//   - manage_webhooks.go, webhooks_sql.go: create, change, retry and delete; the rows
//   - webhook_registry.go, matching.go: the webhooks in memory, and which events one selects
//   - deliverer.go: what runs
//   - partition_worker.go, reconcile_webhooks.go, checkpoint.go: the loop of one partition: reading and
//     matching, changes of webhooks, storing positions
//   - positions_sql.go, start_positions.go: the positions in the database; where a delivery begins
//   - partition_backlog.go, backlog_sender.go: what one webhook has not had yet, and the goroutine that sends
//     it
//   - test_delivery.go: an example event sent on request
//   - receiver_limits.go, http_sender.go, cloudevent.go: a receiver with its back-off; one request; the
//     CloudEvents form
//   - explain_event.go: why an event was or was not sent
package webhook
