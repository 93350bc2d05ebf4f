// Package kazoo reads the events of 2600Hz Kazoo from its message bus, RabbitMQ over
// AMQP 0-9-1, for package feed. If this is your first change, read kazoo.go (what is
// subscribed to), then session.go and message.go.
//
// # The queue
//
// A feed has one durable queue, trunkline.NAME, which keeps the events while no node
// reads. It is bounded: when it is full RabbitMQ drops its oldest message, which is a
// hole. RabbitMQ deletes it after a day without a reader, so that a Trunkline that is
// gone leaves nothing behind. Exchanges are Kazoo's: they are only looked for, never
// declared. One node at a time consumes (an exclusive consumer).
//
// A message is acknowledged when Kafka has it. After a broken connection RabbitMQ
// redelivers unacknowledged messages; of these, messages that this process
// has stored in Kafka are dropped. A restarted process cannot tell, and so
// the last messages before the restart are stored twice.
//
// # Call records
//
// Kazoo's cdr.report has no Origination-Call-ID, by which a click-to-call call is
// found. The events of the call have it: it is remembered from them and added to the
// report, and the event CHANNEL_DESTROY of such a call is stored as its call record
// too. Both have the same id, and so they are one row. A subscription without the
// exchange cdr makes every CHANNEL_DESTROY a call record.
//
// # Crossbar
//
// With crossbar_url, Snapshot asks Kazoo's HTTP API for agents, calls and
// registrations of the account of the API key and all below it, and sync_accounts
// keeps the account tree equal to Crossbar's (accounts.go). Crossbar being away stops
// neither reading nor storing.
//
// # Goroutines
//
// A session has two: one watches the length of the queue, one keeps the accounts
// equal. Close ends both and waits. Nothing is queued but the prefetch messages that
// RabbitMQ sends ahead of an acknowledgement. Session.mu guards what is not
// acknowledged; no other lock is taken under it.
package kazoo
