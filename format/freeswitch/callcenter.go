package freeswitch

import (
	"strings"

	"trunkline/event"
	"trunkline/format"
)

// callcenterFormat is the format of mod_callcenter's CUSTOM event callcenter::info.
var callcenterFormat = format.Format{
	Name: "freeswitch.callcenter", Topic: event.TopicRaw, FromPlatform: true, Encodings: plainEncoding,
	Keys: format.CallEventKeys(eventKeys), ReadAccount: account, DecodeEvent: readEvent, ExtensionOf: extension,
}

// readCallcenter reads an event of mod_callcenter. The id of a call in a queue is that
// of its membership, CC-Member-UUID: a caller who returns to its place keeps it on
// another channel. If an event also has data of a channel, the channel is the agent's
// or the caller's, depending on the action; so facts common to the call are read from
// mod_callcenter's own headers.
func readCallcenter(f *format.Fields, action string) format.Event {
	e := format.Event{Type: event.Custom, Facts: event.Facts{
		AgentID: decodeText(f[fsAgent]), QueueID: firstText(f, fsQueue, fsVariableQueue),
	}}

	switch action {
	case "agent-status-change":
		e.Type = event.AgentState
		agentStatus(&e.Facts, decodeText(f[fsAgentStatus]))
		return e
	case "agent-state-change":
		e.Type = event.AgentState
		agentState(&e.Facts, decodeText(f[fsAgentState]))
		return e
	case "agent-max-no-answer":
		// The following status and the failed attempt have their own events.
		e.Type = event.AgentState
		e.Facts.CallID = decodeText(f[fsMember])
		return e
	}

	name := callcenterName(f, action)
	if name == "" { // agent-add, agent-contact-change, members-count: no call, no state
		return e
	}

	e.Type = event.QueueCall
	if name == event.NameCallTransferred {
		e.Type = event.AgentTransfer
	}

	facts := &e.Facts
	facts.Name = name
	facts.CallID = decodeText(f[fsMember])
	facts.Caller, facts.Callee = decodeText(f[fsMemberNumber]), decodeText(f[fsMemberDNIS])
	if facts.Callee == "" && strings.HasPrefix(action, "member-") {
		facts.Callee = firstText(f, fsRDNIS, fsDestination) // before a transfer to the queue, if any
	}
	if facts.CallID != "" {
		facts.InteractionID = interactionID(f)
	}

	facts.OriginationCallID = firstText(f, fsOrigination, fsSIPOrigination)
	e.Call.CustomerName = decodeText(f[fsMemberName])
	callcenterDetails(f, facts, action)

	return e
}

// extension returns what stands before the @ of an agent's id.
func extension(agentID string) string {
	name, _, _ := strings.Cut(agentID, "@")
	return name
}

// callcenterName returns the name of an event about a call, "" for other events.
func callcenterName(f *format.Fields, action string) event.Name {
	switch action {
	case "member-queue-start", "member-queue-resume":
		return event.NameQueueCallEntered
	case "agent-offering":
		return event.NameQueueCallOffered
	case "bridge-agent-start":
		return event.NameQueueCallAnswered
	case "bridge-agent-fail":
		if format.IsCanceled(decodeText(f[fsOriginateCause])) {
			return event.NameOther
		}
		return event.NameAgentNoAnswer
	case "bridge-agent-end":
		switch {
		case transferredByAgent(f):
			return event.NameCallTransferred
		case callerGone(f):
			return event.NameQueueCallEnded
		}

		return event.NameOther // member-queue-end follows, unless the bridge failed
	case "member-queue-end":
		if abandoned(f) {
			return event.NameQueueCallAbandoned
		}
		return event.NameQueueCallEnded
	}

	return ""
}

// transferredByAgent reports whether the agent's phone has passed the call on, blind or
// attended. mod_sofia has no event for a blind transfer, and one for an attended transfer
// only where its profile asks for it. f is bridge-agent-end, with the agent's channel: its
// refer_uuid is the agent's other leg, to whose end the caller was passed on, even if that
// still rang; without one (a leg of another switch) transfer_to has the caller's new leg.
func transferredByAgent(f *format.Fields) bool {
	return f[fsDisposition].Is("BLIND_TRANSFER") || f[fsDisposition].Is("ATTENDED_TRANSFER") ||
		firstText(f, fsReferLeg) != "" || strings.HasPrefix(decodeText(f[fsTransferTo]), "att:")
}

// callerGone reports whether the caller hung up while the agent was being connected:
// mod_callcenter sets the variable on the agent's channel in no other case. f is
// bridge-agent-end, after which member-queue-end may not follow.
func callerGone(f *format.Fields) bool { return f[fsVariableBridged].Is("false") }

// abandoned reports whether a call left the queue because the caller hung up.
// mod_callcenter also cancels a call for a timeout and for an exit key, and has one
// reason, BREAK_OUT, for a caller who hung up and for one who was removed from the
// queue (by a transfer, for example); in the latter case the channel is still up.
func abandoned(f *format.Fields) bool {
	if !f[fsCause].Is("Cancel") {
		return false // Terminated: after a conversation
	}
	switch decodeText(f[fsCancelReason]) {
	case "", "NONE", "BREAK_OUT":
		state := decodeText(f[fsAnswerState])
		return state == "" || state == "hangup"
	}
	return false // TIMEOUT, NO_AGENT_TIMEOUT, EXIT_WITH_KEY
}

// callcenterDetails adds the state of the call, the reason and the durations.
func callcenterDetails(f *format.Fields, facts *event.Facts, action string) {
	switch facts.Name {
	case event.NameQueueCallEntered:
		facts.State = event.Waiting
	case event.NameQueueCallOffered:
		facts.State = event.Ringing
	case event.NameQueueCallAnswered:
		facts.State = event.Talking
		facts.WaitMS = format.DurationBetween(f[fsJoined], f[fsAnswered])
	case event.NameQueueCallAbandoned:
		facts.State, facts.Reason = event.Ended, decodeText(f[fsCancelReason])
		facts.WaitMS = format.DurationBetween(f[fsJoined], f[fsLeaving])
	case event.NameQueueCallEnded:
		facts.State = event.Ended
		if f[fsCause].Is("Cancel") {
			facts.Reason = decodeText(f[fsCancelReason])
			facts.WaitMS = format.DurationBetween(f[fsJoined], f[fsLeaving])
			return
		}

		facts.Reason = firstText(f, fsHangupCause, fsOriginateCause)
		facts.WaitMS = format.DurationBetween(f[fsJoined], f[fsAnswered])
		facts.TalkMS = format.DurationBetween(f[fsAnswered], f[fsLeaving])

		if action == "bridge-agent-end" { // the agent was never connected
			facts.TalkMS = event.MillisOf(0)
		}
	case event.NameCallTransferred:
		facts.AgentID = "" // who has the call then is not known
	default: // agent.no_answer, other
		facts.Reason = decodeText(f[fsOriginateCause])
		if action == "bridge-agent-fail" && facts.Name == event.NameOther {
			facts.State = event.Waiting // again, if the caller is still there and no other phone rings
		}
		if action == "bridge-agent-end" {
			facts.TalkMS = format.DurationBetween(f[fsAnswered], f[fsTerminated])
		}
	}
}

// agentStatus sets the facts of a status: whether the agent is at work. Available
// follows a login or a break; only the state before distinguishes them.
func agentStatus(facts *event.Facts, status string) {
	facts.Name, facts.State = event.NameAgentState, statusOf(status)
	switch facts.State {
	case event.Offline:
		facts.Name = event.NameAgentLogout
	case event.Break:
		facts.Name = event.NameAgentBreakStart
	}
	facts.Agent = &event.AgentReport{Presence: facts.State}
}

// statusOf returns the presence for a status of an agent.
func statusOf(status string) event.State {
	switch status {
	case "Logged Out":
		return event.Offline
	case "On Break":
		return event.Break
	case "Available", "Available (On Demand)":
		return event.Available
	}
	return event.OtherState
}

// agentState sets the facts of an agent's state: the current activity. An agent
// without an activity may be logged out or on a break, so the state is then unknown.
func agentState(facts *event.Facts, word string) {
	activity := activityOf(word)
	if activity == "" {
		return
	}

	facts.Name, facts.Agent = event.NameAgentState, &event.AgentReport{Activity: activity}
	switch activity {
	case event.ActivityRinging:
		facts.State = event.Ringing
	case event.ActivityTalking:
		facts.State = event.Talking
	}
}

// activityOf returns the activity for a state of an agent, "" for an unknown one. Only an
// agent in the state Waiting gets calls; after a call of an agent whose status is
// Available (On Demand) the state is Idle.
func activityOf(word string) event.Activity {
	switch word {
	case "Waiting", "Reserved":
		return event.ActivityNone
	case "Idle":
		return event.ActivityNotReady
	case "Receiving":
		return event.ActivityRinging
	case "In a queue call":
		return event.ActivityTalking
	}

	return ""
}
