package snapshot

import "strings"

// transition is the change of a call that a source's word means.
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

// transitionOf returns the transition of a word of any format; formats do not
// use the same word differently. ok is false for unknown words.
func transitionOf(word string) (s transition, ok bool) {
	switch normalize(word) {
	case "member_queue_start", "member_queue_resume", // mod_callcenter
		"waiting", "call", "member_add", // ACDc, the statistics and the queue
		"create", "created", "join_queue", // Qubicle
		"channel_create", "entered", "queued": // svc.cc
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

// normalize returns the word in lower case with underscores.
func normalize(word string) string {
	return strings.ToLower(strings.NewReplacer("-", "_", " ", "_").Replace(word))
}

// isLoggedOut reports whether a state or status means logged out.
func isLoggedOut(word string) bool {
	switch normalize(word) {
	case "logged_out", "loggedout", "logout":
		return true
	}
	return false
}
