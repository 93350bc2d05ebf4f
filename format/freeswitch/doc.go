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
//     Status and state are Presence and Activity of event.AgentReport, and neither says
//     anything of the other. Only an agent in the state Waiting gets calls.
//   - The variable cc_agent stays on the caller's channel after the call has been
//     passed on, and mod_sofia has an event for attended transfers only, where its profile
//     has fire-transfer-events: a REFER of the agent's phone is bridge-agent-end with the
//     disposition BLIND_TRANSFER, or with refer_uuid. A REFER with Replaces that the switch
//     refused (deny_refer_requests) looks the same.
//   - member-queue-end with Cancel and BREAK_OUT or NONE is queue.call_abandoned
//     when the caller's channel has hung up, or else queue.call_ended; an event without
//     Answer-State counts as the former. With NONE an agent had just been found:
//     a caller who hangs up at that moment may have a bridge-agent-start before it.
//   - bridge-agent-end is "other": member-queue-end follows. With CC-Agent-Bridged
//     false the bridge failed and nothing may follow. If the channel has the variable
//     cc_agent_bridged, false too, the caller has hung up, and the event is
//     queue.call_ended; else the agent has, and the caller waits again.
//   - bridge-agent-fail with ORIGINATOR_CANCEL or LOSE_RACE is "other" in the state
//     waiting: the caller hung up, the agent's status changed, or another agent was
//     faster; a caller that is still there waits again. The state of the agent has an
//     event of its own.
//   - The events of mod_callcenter about an agent name no channel: the feed has to
//     supply the account and the number.
//   - CHANNEL_HANGUP and CHANNEL_DESTROY are "other": a leg's end is
//     CHANNEL_HANGUP_COMPLETE, which a feed has to subscribe to.
//
// # Files
//
// Read recognise_format.go, then event.go and cdr.go.
//
//   - recognise_format.go, event_headers.go, url_encoded_text.go: the formats, how records are recognised, what
//     headers say, and their encoding
//   - event.go, callcenter.go: events of the switch and of mod_callcenter
//   - cdr.go, cdr_leg.go, interaction_id.go: call records: the row, a leg, which legs belong
//     together
//   - cdr_form.go, json_repair.go: the body that mod_json_cdr posts, and its mistakes
//   - plain_event.go, plain_event_json.go: events as text
//   - live_event.go, snapshot_words.go: what the live feed needs: events of the event socket, and states
//     for a resync
package freeswitch
