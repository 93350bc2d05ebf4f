// Package kazoo reads the events of 2600Hz Kazoo from its message bus, RabbitMQ over AMQP 0-9-1, for
// package feed. If this is your first change, read platform.go (the subscription), then session.go and
// message.go.
//
// # The queue
//
// A feed has one durable queue, trunkline.NAME, which stores the events while no node reads. It is
// bounded: when it is full RabbitMQ drops the oldest message, which is a hole. RabbitMQ deletes the
// queue after a day without a consumer, so that none is left after Trunkline is removed. The exchanges
// belong to Kazoo and are declared passively. One node at a time consumes (an exclusive consumer).
//
// A message is acknowledged when Kafka has it. After a lost connection RabbitMQ redelivers
// unacknowledged messages; the process drops those that it has stored in Kafka. A restarted process
// cannot recognize them, so the last messages before the restart are stored twice.
//
// # Call records
//
// Kazoo's cdr.report has no Origination-Call-ID, which identifies a click-to-call call. The session
// takes it from the call's events and adds it to the report. It also stores the event CHANNEL_DESTROY
// of such a call as a call record. Both records have the same id, so they become one row. A
// subscription without the exchange cdr makes every CHANNEL_DESTROY a call record.
//
// # Crossbar
//
// With crossbar_url, Snapshot requests from Kazoo's HTTP API the agents, calls and registrations of the
// API key's account and all accounts below it, and sync_accounts keeps the account tree equal to
// Crossbar's (account_sync.go). Events are read and stored also while Crossbar is unavailable.
//
// # Goroutines
//
// A session has two: one watches the length of the queue, one syncs the accounts. Close ends both and
// waits for them. Only the prefetched messages, which RabbitMQ sends before earlier ones are
// acknowledged, are queued. session.mu guards the unacknowledged messages; no other lock is taken while
// it is held.
//
// # Files
//
// Read platform.go, then session.go and message.go.
//
//   - platform.go: the platform and its subscription
//   - session.go, check_broker_frames.go, refusal.go: a session, what is checked of the peer's frames, and
//     its refusals
//   - message.go, origination_ids.go, stored_message_digests.go: a message, the calls that click to call placed,
//     and the messages that Kafka has already
//   - crossbar_accounts.go, snapshot.go, account_sync.go: Kazoo's HTTP API: its accounts, agents and calls, and
//     our accounts kept equal to its own
//   - agent_and_call_commands.go: actions on agents and calls, by the same API
package kazoo
