package snapshot

import "strings"

// step is what a source's word says of a call.
type transition struct {
	state   CallState
	reopens bool
	ended   bool
}

var (
	entersQueue    = transition{state: Waiting, reopens: true}
	returnsToQueue = transition{state: Waiting}
	offersCall     = transition{state: Offering}
	answersCall    = transition{state: Answered}
	endsCall       = transition{ended: true}
)

// stepOf is what the word means in any of the formats: none of them uses
// another's word for something else. Of a word that is not here nothing is
// known.
func transitionOf(word string) (s transition, ok bool) {
	switch normalize(word) {
	case "member_queue_start", "member_queue_resume", // mod_callcenter
		"waiting", "call", "member_add", // ACDc, the statistics and the queue
		"create", "created", "join_queue", // Qubicle
		"channel_create", "entered", "queued": // the specification's shape
		return entersQueue, true
	case "bridge_agent_fail", "missed", "channel_unbridge":
		return returnsToQueue, true
	case "agent_offering", "offering", "offered", "connecting", "ringing", "channel_progress", "channel_progress_media":
		return offersCall, true
	case "bridge_agent_start", "handled", "connect_accepted", "call_success", "pickup", "connected",
		"answered", "bridged", "transferred", "channel_answer", "channel_bridge":
		return answersCall, true
	case "bridge_agent_end", "member_queue_end",
		"abandoned", "processed", "hungup", "call_cancel", "call_failure",
		"delete", "deleted", "hangup", "ended", "completed", "del_member",
		"channel_hangup", "channel_hangup_complete", "channel_destroy":
		return endsCall, true
	}
	return transition{}, false
}

// normal is the word in one spelling.
func normalize(word string) string {
	return strings.ToLower(strings.NewReplacer("-", "_", " ", "_").Replace(word))
}

// loggedOut says whether a state or status is the word for not being at work.
func isLoggedOut(word string) bool {
	switch normalize(word) {
	case "logged_out", "loggedout", "logout":
		return true
	}
	return false
}
