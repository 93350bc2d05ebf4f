// Package state defines the state of agents, calls and devices: the fold of the
// facts of cc.evt, partition by partition, and its records on the compacted
// topic cc.state. The normalizer keeps it in a Partition and writes it; snapshots
// and figures read it into a View.
//
// # The fold
//
// Partition.Apply first completes the facts of an event from the state before
// it, then folds them. The fold uses nothing but the completed facts, as they
// stand in the message, and the state before: so folding the messages of cc.evt
// (Partition.Fold) gives the same bytes as the normalizer's own, from the
// beginning, from any Position, and after any takeover. Events with an id at or
// below the last folded one are ignored, so repeats change nothing.
//
// The entries contain all data that a later event can depend on. So an ended call
// stays in the state "ended" for a quarter of an hour, and a device in the state
// "unregistered", before its tombstone is written: a late event must not reopen it,
// not even after a takeover. Snapshots omit such entries (Entry.Live). Only
// queue.call_entered, call.created and a call.answered with an agent start a new
// call under the id of an ended one.
//
// Entries expire in the time of event ids, never by a clock: agents that are
// offline after 7 days without an event, other agents after 31 days, calls and
// devices after 24 hours. At most maxPerAccount entries of a kind are kept for an
// account; beyond that the entry whose last event is oldest is deleted. At most
// maxExpirePerEvent entries are deleted with one event. Ids over maxText bytes are not
// folded; longer texts are omitted.
//
// An entry is written again when an event changes more than its event id, or
// when its event id is older than refreshAge, so that a registration that is
// renewed every minute costs one record an hour.
//
// # Identities
//
// An event may have an identity, the run and number of its platform. Numbers on
// cc.state record the folded ones, so the normalizer drops the second copy of an event
// (Partition.Seen) even after a takeover. They are folded and expire like entries: 24
// hours after the last event of their range. Readers other than normalizers do not keep
// them (View.KeepNumbers).
//
// # What the fold expects of a format
//
//   - agent.state with a state reports whether the agent is at work: "available"
//     after "offline" is a login, after "break" the end of the break. Some platforms
//     have a second word for the current activity of the agent (mod_callcenter:
//     status and state). There the end of an activity is agent.state without a
//     state: it ends ringing, talking and wrap-up and changes nothing else. The
//     status "available" sets Facts.AtWork: an agent with a call keeps the state of
//     the call.
//   - On platforms whose only login is joining the first queue, and whose only logout
//     is leaving the last one, agent.queue_join and agent.queue_leave have the state
//     of the agent after them. A join after "offline" is then a login, and a leave
//     with "offline" a logout if no queue is left.
//   - queue.call_* and call.* carry the state of the call; those that end a call
//     may carry the state of the agent after it (wrap_up, available).
//   - device.* have the device in agent_id, or else in caller.
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
package state
