// Package asterisk parses Asterisk's events of the manager interface (AMI), Cdr
// among them. testdata has captured records with the messages and rows they
// become; those in vocabulary are constructed from captured ones.
//
// An AMI event is one JSON object with keys and values as on the wire; a key that
// occurs more than once is an array, of which the first value is used. AMI events
// have a timestamp only with timestampevents = yes in manager.conf, and name no
// account: AccountCode and channel variables are empty in a call's first events,
// and events about members of queues have neither. The feed or the Kafka key gives
// the account.
//
// # Limits of single events
//
//   - QueueCallerAbandon is queue.call_abandoned, also when the caller left by a
//     timeout or because the queue became empty. VarSet QUEUESTATUS follows then
//     and is queue.call_ended with that reason; before a caller's own hang-up comes
//     HangupRequest ("other") with the same call_id.
//   - QueueCallerLeave is "other": it comes before AgentConnect, after
//     QueueCallerAbandon, and alone when a caller leaves by a key; such a call is
//     still in the queue for the state until its Hangup.
//   - Queue members do not log in; joining the first queue starts the agent's work,
//     leaving the last ends it. QueueMemberAdded and Removed are queue memberships.
//     Only agents of app_agent_pool log in.
//   - Pauses are per queue. QueueMemberPause with Paused 1 also changes the reason
//     of a pause that has begun. A pause set during a call starts when the call
//     ends, with its QueueMemberStatus.
//   - A Local channel is in use from the moment it is dialled, so a member's
//     QueueMemberStatus 2 without InCall is "other"; use AgentCalled and
//     AgentConnect instead.
//   - Wrap-up begins with QueueMemberStatus 1 if the member has a wrapuptime of its
//     own and the event a Timestamp. No event reports the end of wrap-up or a
//     queue's wrapuptime.
//   - AgentComplete with the reason transfer ends the call for the queue; the
//     caller's call continues.
package asterisk
