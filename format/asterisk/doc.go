// Package asterisk has what is known of Asterisk: packets of the manager interface
// (AMI) and its Cdr events. testdata has captured records with the messages and
// rows they become; those in vocabulary are constructed from captured ones.
//
// A packet is one JSON object with keys and values as on the wire; a key that
// occurs more than once is an array, of which the first counts. AMI has no clock
// unless manager.conf has timestampevents = yes, and names no account: AccountCode
// and channel variables are empty on a call's first packets, and packets about
// members of queues have neither. The feed or the Kafka key gives the account.
//
// # What one packet cannot tell
//
//   - QueueCallerAbandon is queue.call_abandoned, also when the caller left by a
//     timeout or because the queue became empty. VarSet QUEUESTATUS follows then
//     and is queue.call_ended with that reason; before a caller's own hang-up comes
//     HangupRequest ("other") with the same call_id.
//   - QueueCallerLeave is "other": it comes before AgentConnect, after
//     QueueCallerAbandon, and alone when a caller leaves by a key; such a call is
//     still in the queue for the state until its Hangup.
//   - A member of a queue is not logged in: who joins the first queue begins to
//     work, who leaves the last one stops. QueueMemberAdded and Removed are queue
//     memberships. Only agents of app_agent_pool log in.
//   - A break is one of each queue. QueueMemberPause with Paused 1 also changes the
//     reason of a break that has begun. While the agent rings or talks it begins no
//     break: the QueueMemberStatus at the end of the call does.
//   - A Local channel is in use from the moment it is dialled, so that a member's
//     QueueMemberStatus 2 without InCall is "other"; AgentCalled and AgentConnect
//     tell.
//   - A wrap-up begins with QueueMemberStatus 1 where the member has a wrapuptime of
//     its own and the packet a Timestamp; its end is in no packet, and the
//     wrapuptime of a queue in none.
//   - AgentComplete with the reason transfer ends the call for the queue; the
//     caller goes on.
package asterisk
