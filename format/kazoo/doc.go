// Package kazoo has what is known of 2600Hz Kazoo: events of its message bus and
// of the Blackhole socket (Qubicle, ACDc, calls, conferences), its webhooks, and
// its call records. Keys are spelled Dash-Case on the bus and snake_case
// elsewhere; either is read.
//
// # What one message cannot tell
//
//   - The status "ready" is agent.state: it follows a login, a break or a call.
//   - ACDc tells a happening more than once: a call that enters a queue is a member
//     call, a member_add and the statistic "waiting"; an answer is connect_accepted,
//     call_success and "handled"; a command to an agent (login) comes before the
//     status that follows from it (logged_in). The first one counts.
//   - "hungup" of a member is call.ended: whether the caller waited or talked is in
//     the statistic that follows.
//   - "missed" with LOSE_RACE or ORIGINATOR_CANCEL is "other", as in mod_callcenter.
//   - "handled" and "processed" have the clock of their own step alone, so that
//     waiting and talking times are the state's to know; where a message has the
//     clock of the step before it, the time is told.
//   - pending_logged_out is "other": the agent is still on a call. agent_change to
//     "unavailable" is "other": it tells not why.
//   - A registration's end is not told.
//   - connect_win, connect_accepted and hungup go to one process (the exchange
//     targeted), so that a feed never gets them; the statistics tell the same but the
//     offer, which is the agent's status connecting.
package kazoo
