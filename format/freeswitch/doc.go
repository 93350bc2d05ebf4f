// Package freeswitch parses the formats of FreeSWITCH: events of the event socket
// (JSON and text/event-plain), mod_callcenter's events, and mod_json_cdr's call
// records in each of its encodings. testdata has captured records with the
// messages and rows they become; those in vocabulary are constructed from captured
// ones.
//
// # Limits of single events
//
//   - agent-status-change to Available is agent.state: it follows a login or a
//     break. agent-state-change to Waiting, Idle or Reserved is agent.state without
//     a state: the agent has no current activity, and may be logged out or on a break.
//   - agent-status-change does not report whether the agent is in a call. On Break and
//     Logged Out determine the state; Available does not (event.Facts.AtWork).
//   - member-queue-end with Cancel and BREAK_OUT or NONE is queue.call_abandoned
//     when the caller's channel has hung up, or else queue.call_ended; an event without
//     Answer-State counts as the former. With NONE an agent had just been found:
//     a caller who hangs up at that moment may have a bridge-agent-start before it.
//   - bridge-agent-end is "other": member-queue-end follows. With CC-Agent-Bridged
//     false nothing follows: the bridge failed, and the caller waits again, if still
//     there.
//   - bridge-agent-fail with ORIGINATOR_CANCEL or LOSE_RACE is "other": the caller
//     hung up, the agent's status changed, or another agent was faster. The state
//     of the agent has an event of its own.
//   - The events of mod_callcenter about an agent name no channel: the feed has to
//     supply the account and the number.
//   - CHANNEL_HANGUP and CHANNEL_DESTROY are "other": a leg's end is
//     CHANNEL_HANGUP_COMPLETE, which a feed has to subscribe to.
package freeswitch
