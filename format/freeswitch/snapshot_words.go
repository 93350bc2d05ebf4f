package freeswitch

import "trunkline/event"

// AgentOf returns what the status and the state of an agent of mod_callcenter say, as its
// events do.
func AgentOf(status, state string) *event.AgentReport {
	return &event.AgentReport{Presence: statusOf(status), Activity: activityOf(state)}
}

// MemberStateOf returns the state of a caller in a queue of mod_callcenter, "" if the
// caller has left it.
func MemberStateOf(word string) event.State {
	switch word {
	case "Waiting":
		return event.Waiting
	case "Trying":
		return event.Ringing
	case "Answered":
		return event.Talking
	}
	return ""
}

// LegStateOf returns the state of a leg from its Channel-Call-State, "" if the leg is
// ending.
func LegStateOf(word string) event.State {
	switch word {
	case "DOWN", "DIALING", "RINGING", "EARLY", "RING_WAIT":
		return event.Ringing
	case "ACTIVE", "UNHELD":
		return event.Talking
	case "HELD":
		return event.Held
	}
	return ""
}

// LegInteraction returns the interaction id of a leg without known variables:
// direction is its Call-Direction, callUUID its Channel-Call-UUID.
func LegInteraction(direction, uuid, callUUID string) string {
	ids := legIDs{direction: direction, ownUUID: uuid, callers: [4]string{1: callUUID}}
	return ids.interactionID()
}
