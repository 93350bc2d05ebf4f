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
//   - QueueCallerLeave is "other" in the state talking: the caller waits no longer. It
//     comes before AgentConnect, after QueueCallerAbandon, and alone when a caller
//     leaves by a key.
//   - Queue members do not log in; joining the first queue starts the agent's work,
//     leaving the last ends it. QueueMemberAdded and Removed are queue memberships.
//     Only agents of app_agent_pool log in; one that is a member of a queue under
//     another interface with the state interface Agent:<id> has two ids, which the
//     member's events say.
//   - Pauses are per queue, and each event of a member has all of its membership and
//     its phone. Whether a pause is a break depends on the other queues and on calls, so
//     QueueMemberPause is only named as if it were.
//   - A Local channel is in use from the moment it is dialled, so the status 2 of a
//     member tells nothing unless it has a state interface; use AgentCalled and
//     AgentConnect instead. An agent of app_agent_pool is busy before, during and
//     after a call of the pool, which is wrap-up unless a call rings or is connected.
//   - Wrap-up begins with QueueMemberStatus 1 if the member has a wrapuptime of its
//     own and the event a Timestamp. No event reports the end of wrap-up or a
//     queue's wrapuptime.
//   - AgentComplete ends the visit to the queue; unless the caller hung up, the
//     caller's channel goes on to its Hangup.
package asterisk
