// Package kazoo parses events of 2600Hz Kazoo's message bus and of the Blackhole
// socket (Qubicle, ACDc, calls, conferences), its webhooks, and its call records.
// Keys are spelled Dash-Case on the bus and snake_case elsewhere; both are read.
//
// # Limits of single messages
//
//   - The status "ready" is agent.state: it follows a login, a break or a call.
//   - ACDc reports the same event several times; only the first is used. A call that
//     enters a queue is a member call, a member_add and the statistic "waiting"; an
//     answer is connect_accepted, call_success and "handled"; a command to an agent
//     (login) comes before the status that follows from it (logged_in).
//   - "hungup" of a member is call.ended: the statistic that follows reports whether
//     the caller waited or talked.
//   - "missed" with LOSE_RACE or ORIGINATOR_CANCEL is "other", as in mod_callcenter.
//   - "handled" and "processed" may carry only their own timestamp; durations are
//     then computed from the tracked state. With the timestamp of the step before,
//     the message has the duration.
//   - pending_logged_out is "other": the agent is still on a call. agent_change to
//     "unavailable" is "other": it gives no reason.
//   - No message that is read here reports the end of a registration.
//   - connect_win, connect_accepted and hungup go to one process (the exchange
//     targeted), so a feed never gets them; the statistics cover all but the offer;
//     for that use agent status connecting.
package kazoo
