package freeswitch

import "trunkline/event"

// AgentStateOf returns the state of an agent of mod_callcenter from its status and
// state, consistently with its events: a status that is not at work takes precedence
// over the current activity.
func AgentStateOf(status, state string) event.State {
	var facts event.Facts
	agentStatus(&facts, status)
	if facts.State == event.Available {
		agentState(&facts, state)
	}
	return facts.State
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
// direction is its Call-Direction, call its Channel-Call-UUID.
func LegInteraction(direction, uuid, callUUID string) string {
	ids := legIDs{direction: direction, ownUUID: uuid, callers: [4]string{1: callUUID}}
	return ids.interactionID()
}
