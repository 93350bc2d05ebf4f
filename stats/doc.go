// Package stats computes the figures of queues and agents from the facts of
// cc.evt, partition by partition, and keeps them on the compacted topic cc.stats.
// What each figure means is in docs/figures.md.
//
// # The fold
//
// Fold is a function of the events' facts, their ids and the rules (the interval,
// how long late events count, the thresholds of queues). A row keeps the thresholds
// that are in force at the beginning of its interval. Folding the log again from the
// beginning, from any Position, or after any takeover gives the same bytes. Events
// with an id at or below the last folded one are ignored, so repeats change nothing.
// The fold reads no clock: changes by time alone (an entry expires, an agent without an
// event gets the time of the interval that has ended) happen with the first event whose
// id is late enough, at most maxDuePerEvent entries with each event, in the order of
// entryTable.timers, which is total.
//
// Fold only says who is asked in which order. The entries are in entryTable, which knows when each is due
// and what has changed; rows opens rows in it; agentFold and callFold change the entries for an event of an
// agent and of a call; performances and alertWatches find in it which messages are due. None knows Fold.
//
// An event counts at the time reported by its source, unless that is more than
// state.MaxClockSkew after its id. Events whose interval ended more than
// Settings.LateEvents ago are dropped and counted in a metric.
//
// The states of agents are those of cc.state, which messages have (agent_state, or state of
// an event about the agent); of messages of servers before that, they are computed
// (state.AgentAfter). The time in a
// state is added to the rows when it ends, and a minute after each interval's end.
// A late event moves time that was added already from one state to another. Time
// never counts twice: a state that begins before the one that it follows, because a
// clock was set back, begins with it.
//
// # Messages of agents
//
// Each row of an agent has an open interval, which ends with the first event at least
// closeAfter after the end of the interval: then the worker produces the row to its
// partition of cc.raw, and the normalizer makes it a message AGENT_PERFORMANCE. The row
// is produced before the position after the event is written, so none is missing. A
// repeated fold of the event produces the same record with the same identity, which the
// normalizer drops while it keeps the identity, 24 hours; older ones are not produced.
// In a partition without events nothing becomes due: there the worker produces the
// first message by the clock, and it returns as an event.
//
// # Configuration
//
// The fold reads the thresholds of queues from their own log, cc.queues, whose records
// contain the interval from which they are in force (QueueConfigs). A change is in force
// configLead after it was written at the earliest. The fold of an event waits until
// cc.queues was read to its end no earlier than configAge before the event's id, and a
// row begins at most state.MaxClockSkew after that id: so all thresholds in force for the row have
// been read, whenever it is folded, if clocks differ by less than a minute. The log
// keeps all versions.
//
// # Alerts
//
// The same fold finds the alerts of queues, agents and feeds (docs/alerts.md). A watch is what
// they look at, made from the entries and not stored. It is reviewed after each event that changes
// it, and at the time at which it may change without one (its due, in alertWatches.reviews), as of exactly
// that time, however late the next event comes: at most maxReviews with each event. A process that
// takes over finds the same times from the entries (alertWatch.reviewTime). An alert has its id from the
// event id since which its condition holds; its two messages have an identity each, and are
// produced before the position, like those of agents. The rules are on cc.queues, in force
// alertConfigLead after they were written; who inherits from whom is written there too.
//
// In a partition without events, and for what is not on the log (feeds), the worker writes a
// trigger event to cc.raw (alert_trigger_events.go), which comes back. It never announces an alert by the
// clock: an event of before may still be on its way.
//
// # The topic
//
// cc.stats has the rows, and the entries with which the fold continues: the calls in
// queues (<account>|open_call|<id>), the agents (<account>|open_agent|<id>), the
// open intervals (<account>|open_interval|<agent>|<start>) and the position in
// cc.evt. All are on one topic because, without transactions, a record batch is the only
// atomic write in Kafka: a batch has the changed entries and, as its last record, the
// Position up to which they are the fold, as on cc.state. A row gets a tombstone when it
// accepts no more events, so that a takeover reads no history.
//
// Two processors may overlap for a while. The one that owns the partition detects this
// by the offsets of its batches, compares the other's records with its own entries, and
// writes the differing ones again. A processor that is behind starts again from the
// topic. Readers ignore a record whose header event_id is
// below that of the key's last one.
//
// # Folding again
//
// A rebuild (Rebuilds has the requests, in the database) folds a partition from the
// beginning of cc.evt beside its worker, with a Fold of its own, until it has caught
// up. Rows that expire during the rebuild are written at once, each with its tombstone
// and without a position, so that readers receive them and a takeover does not. Then the
// worker continues with the new fold and writes the differences at its own position. An
// interrupted rebuild starts again; the rows that it wrote are correct. If the start of
// the log was deleted, entries that depend on it remain unchanged (rebuildRun.isExact).
//
// # Goroutines and bounds
//
// Processor.Run has one goroutine for each partition assigned by its consumer group, one
// more during a rebuild of the partition, and one that exchanges requests and progress
// with the database; all end with its context. A partition's goroutine folds until
// flushBytes of records have changed or gatherTime is over, then writes them. While
// Kafka is unavailable it waits, and new events stay in cc.evt. There are no locks.
//
// # Files
//
// Read entry.go and fold.go: the figures are a fold. Then partition_worker.go.
//
//   - entry.go, entry_table.go, entry_timers.go, stats_topic_view.go: an entry of cc.stats, the entries in memory,
//     which is due first, and what a reader of the topic has
//   - intervals.go, rows.go: when an entry is due; the rows, and what an account may have
//   - fold.go, fold_call.go, fold_agent.go: the fold: what an event of a call or an agent changes, and what
//     time changes
//   - alert_watches.go, alert_watch.go, alert.go, alert_rule.go, alert_config.go: alerts: when they are
//     reviewed, what is watched of one queue or agent, an alert and its events, the rules, their versions on
//     cc.queues
//   - alert_trigger_events.go, feed_state_poller.go, alert_messages.go: events for the time and for feeds, the
//     states of feeds, and the events of alerts as messages
//   - parse_alert_and_call.go: alerts and calls of cc.stats, for package figures
//   - agent_performance.go, performance_messages.go: figures of agents as messages on the channel
//   - queue_config.go: thresholds of queues, on cc.queues
//   - processor.go, partition_worker.go, wake_functions.go, partition_fold.go: the loop of one partition
//     of cc.evt, what wakes it, and the log
//   - rebuild_run.go, rebuild_requests.go, log_start.go: folding again, the requests for it, and from when on
//     the log has all events
//   - queue_metrics.go, metrics.go, settings.go: Prometheus metrics of
//     queues and of the processor; settings
package stats
