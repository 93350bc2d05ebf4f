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
// No clock is read: what time alone does (an entry expires, an agent without an event
// gets the time of the interval that is over) happens with the first event whose id
// is late enough, at most dueAtOnce entries with each event, in the order of
// Fold.timers, which is total.
//
// An event counts at the time that its source tells, unless that is more than
// maxAhead after its id. Events of which the interval is over for longer than
// Settings.LateEvents are left out and counted in a metric.
//
// The states of agents are those of cc.state (state.AgentAfter). The time in a
// state is added to the rows when it ends, and a minute after each interval's end.
// A late event moves time that was added already from one state to another. Time
// never counts twice: a state that begins before the one that it follows, because a
// clock was set back, begins with it.
//
// # Messages of agents
//
// Each row of an agent has an open interval beside it, which ends with the first
// event that is closeAfter behind the interval's end: then the row is produced to
// the worker's partition of cc.raw, and becomes a message AGENT_PERFORMANCE. It is
// produced before the position behind the event is written, so none is missing;
// whoever folds the event again makes the same record with the same identity, which
// the normalizer drops as long as it knows it, 24 hours. Older ones are not made. In
// a partition without events nothing is due by itself: there the worker makes the
// first message, by the clock, which comes back as an event.
//
// # Configuration
//
// The thresholds of queues reach the fold through a log of their own, cc.queues,
// whose records say from which interval on they are in force (QueueConfigs). A change
// is in force at the earliest configLead after it was written. The fold of an event
// waits until cc.queues was read to its end no earlier than configAge before the
// event's id, and a row begins at most maxAhead after that id: so all that is in
// force for the row has been read, whenever it is folded, as long as clocks differ by
// less than a minute. The log keeps all versions.
//
// # The topic
//
// cc.stats has the rows, and beside them what the fold needs to go on: the calls
// in queues (<account>|open_call|<id>), the agents (<account>|open_agent|<id>), the
// open intervals (<account>|open_interval|<agent>|<start>) and the position in
// cc.evt. All are on one topic because a record batch is the only
// thing that Kafka writes as a whole without transactions: a batch has the entries
// that changed and as its last record the Position up to which they are the fold,
// as on cc.state. A row gets a tombstone when it takes no more events, so a takeover
// reads what it needs and no history.
//
// Two processors may overlap for a while. The one that owns the partition notices
// it by the offsets that its batches get, compares what it did not write with what
// it has, and writes again what differs. A processor that finds itself behind
// begins again from the topic. Readers ignore a record whose header event_id is
// below that of the key's last one.
//
// # Folding again
//
// A rebuild (Rebuilds has the requests, in the database) folds a partition from the
// beginning of cc.evt beside its worker, with a Fold of its own, until it has caught
// up. Rows whose time is over by then are written as they come, each with its
// tombstone and without a position, so that they reach readers and nobody who takes
// over. Then the worker goes on with the new fold and writes what differs at its own
// position. A rebuild that is interrupted begins again; what it wrote is right by
// itself. Where the log's beginning was deleted, entries that depend on it stay as
// they are (rebuildRun.exact).
//
// # Goroutines, and when it is full
//
// Processor.Run has one goroutine for each partition that its consumer group gives
// it, one more while the partition is folded again, and one that exchanges requests
// and progress with the database; all end with its context. A partition's goroutine folds until flushBytes of
// records have changed or gatherTime is over, writes them, and goes on. While Kafka
// is unavailable it waits, and cc.evt holds what comes. There are no locks.
package stats
