// Package state defines the state of agents, calls and devices: the fold of the
// facts of cc.evt, partition by partition, and its records on the compacted
// topic cc.state. The normalizer keeps it in a Partition and writes it; snapshots
// and figures read it into a View.
//
// # The fold
//
// Partition.CompleteAndFold first completes the facts of an event from the state before
// it, then folds them. The fold uses nothing but the completed facts, as they
// stand in the message, and the state before: so folding the messages of cc.evt
// (Partition.FoldCompleted) gives the same bytes as the normalizer's own, from the
// beginning, from any Position, and after any takeover. Events with an id at or
// below the last folded one are ignored, so repeats change nothing.
//
// The entries contain all data that a later event can depend on. So an ended call
// stays in the state "ended" for a quarter of an hour, and a device in the state
// "unregistered", before its tombstone is written: a late event must not reopen it,
// not even after a takeover. Snapshots omit such entries (Entry.Live). Only
// queue.call_entered, call.created and a call.answered with an agent start a new
// call under the id of an ended one, and queue.call_ended in the state talking says that
// only its visit to the queue has ended.
//
// Entries expire in the time of event ids, never by a clock: agents that are
// offline after 7 days without an event, other agents after 31 days, calls and
// devices after 24 hours. At most maxPerAccount entries of a kind are kept for an
// account; beyond that the entry whose last event is oldest is deleted. At most
// maxExpirePerEvent entries are deleted with one event. Ids over maxTextBytes are not
// folded; longer texts are omitted.
//
// An entry is written again when an event changes more than its event id, or
// when its event id is older than refreshAge, so that a registration that is
// renewed every minute costs one record an hour.
//
// # Identities
//
// An event may have an identity, the run and number of its platform. SeenNumbers on
// cc.state record the folded ones, so the normalizer drops the second copy of an event
// (Partition.Seen) even after a takeover. They are folded and expire like entries: 24
// hours after the last event of their range. Readers other than normalizers do not keep
// them (View.KeepNumbers).
//
// # The state of an agent
//
// Several sources report about one agent, and none of them knows all: its phone (Device),
// each queue in which it is a member (Member: paused, in a call, in wrap-up until), whether
// it is at work (Presence), what its platform reports that it does (Activity), and the queues'
// and switches' calls (Calls). An event changes the facts that it is about and no other;
// they are held side by side in KnownAgent. One function, KnownAgent.combine, makes the state from
// them, for events, comparisons and records alike:
//
//  1. talking: a call is answered; or the phone is in use, whoever called; or a queue
//     counts a connected call and the phone is not idle; or the platform reports it.
//  2. ringing: a call rings at the agent, or the phone rings, or the platform reports it.
//  3. wrap_up, if the platform reports this state or keeps the phone busy for it.
//  4. offline or break, as the presence is.
//  5. break, if the agent is paused in every queue in which it is a member; the pause that
//     began last gives the reason. A pause in some of them is a fact of these memberships,
//     and the agent counts there as on a break (Entry.InQueue).
//  6. wrap_up, until the wrap-up of each membership is over.
//  7. other, if the presence is; if the platform gives the agent no calls
//     (ActivityNotReady); if the phone is busy without a call, or cannot be reached.
//  8. available.
//
// AfterCall is what 4 to 8 give while 1 to 3 decide. The facts that an order of
// simultaneous events can leave behind are those that commute, with these rules:
//
//   - An idle phone ends the calls on which the agent talks, not one that only begins to
//     ring; so the end of a call may be reported by the phone or by the queue, in any order.
//   - ActivityNone and a report that the agent is available or in wrap-up end all its calls.
//     A report of a break or a logout ends none: it counts after them.
//   - A call is linked from both ends: the call's entry has the agent that talks (AgentID)
//     and those at whom it rings (Ringing), the agent's has its Calls. Whichever side is
//     reported first, foldFacts keeps the other in step, so that a snapshot never contradicts
//     itself. An offer of a call that has ended or that another agent has changes nothing.
//
// # Visits and legs
//
// A call in a queue is a visit (Entry.IsLiveVisit): it begins with queue.call_entered, or with
// the first event of the queue about it. Its leg may have the same id (Asterisk,
// Kazoo) or its own (mod_callcenter, where one visit has two or three legs). The numbers of
// a queue count visits. It ends with queue.call_abandoned or queue.call_ended, with its
// leg, or with other in the state talking: the caller has left the queue, and the next event
// says whether an agent has answered: the call rings at nobody then, and only a phone that
// says so does. After queue.call_ended a leg that is known (LegOutlivesVisit) goes on as a talking call of
// no queue until call.ended. A visit of a call on which its agent talks no longer, as the
// agent's phone or platform reports, has ended too: its call keeps the queue, and is not counted.
//
// # The history of a call
//
// Entry.History has the steps of a call in its queues until it ends, at most MaxSteps: what
// entered, was offered, not answered, answered, transferred, left. It goes on from queue to
// queue. Where a visit has an id of its own, its entry has the steps and the leg's says which
// visit that is: the next visit takes them over, also if it begins before the end of the last
// one is reported, whose last steps are then added to the next one's. A leg without events of its
// own (LegOutlivesVisit) links no visits. Views do not keep histories.
//
// # What the fold expects of a format
//
//   - A platform that reports the parts separately gives them in Facts.Agent; State of such
//     an event is completed. A member's device, in_call, paused and wrap-up come together.
//   - A platform with one value for the state of an agent gives it as State of agent.state: "available"
//     after "offline" is a login, after "break" the end of the break. agent.state without a
//     state ends ringing, talking and wrap-up and changes nothing else.
//   - On platforms whose only login is joining the first queue, and whose only logout
//     is leaving the last one, agent.queue_join and agent.queue_leave have the state
//     of the agent after them. A join after "offline" is then a login, and a leave
//     with "offline" a logout if no queue is left.
//   - queue.call_* and call.* carry the state of the call; those that end a call
//     may carry the state of the agent after it (wrap_up, available). Without a state, the
//     end of a visit leaves the leg.
//   - other with the state waiting ends an offer to its agent: the call waits again if no
//     other phone rings.
//   - device.* have the device in agent_id, or else in caller, and where they are about one
//     of its registrations, that in contact: a device is registered while it has one.
//   - Of a comparison (ReasonResync) the platform's reason is in Facts.Agent.
//
// Records that a server before Entry.KnownAgent wrote are read: what is known of their agents is derived
// from the state.
//
// # The topic
//
// A record batch of cc.state has the entries that changed, the last value of
// each, and as its last record the Position in cc.evt up to which they are the
// fold. A reader must apply a batch as a whole (View does).
//
// Two normalizers may overlap for a while and write their batches interleaved. The
// normalizer that owns the partition detects it by the offsets of its batches and
// writes the overwritten entries again. Until then readers ignore a record whose event
// id is below that of the key's last one. A tombstone has its event id in the header
// HeaderEventID. A reader that finds records deleted before its offset (the embedded
// broker compacts by writing the last records again at the end) starts again with a new
// View.
//
// The package does no I/O, starts no goroutines and has no locks.
//
// # Files
//
// Read entry.go and fold.go, then call_transition.go.
//
//   - entry.go, fold_position.go, record.go: an entry, the position up to which they are complete, their records
//   - partition.go, reader_view.go: the entries of a partition as the normalizer has them, and as readers
//     have them
//   - fold.go, fold_agent.go, fold_call.go, fold_device.go, call_transition.go: what an event changes
//   - known_agent.go, apply_agent_report.go: what is known of an agent, who has several queues and calls, the state
//     that follows from it, and what a platform's report changes in it
//   - inferred_agent.go: an agent's state by what happened to it, where no platform has reported it
//   - complete_facts.go, call_history.go: facts, and the history of a call, that the state adds to an event
//   - compact_ended_call.go, seen_numbers.go: what is kept of ended calls and of seen identities
package state
