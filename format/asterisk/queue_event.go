package asterisk

import (
	"strings"

	"trunkline/event"
	"trunkline/format"
)

// queueMemberEvent parses an AMI event about a member of a queue. An agent in several queues
// has one for each.
func queueMemberEvent(f *format.Fields, name string) format.Event {
	e := format.Event{Type: event.AgentState, Facts: event.Facts{
		AgentID: text(f[amiInterface]), AgentName: text(f[amiMemberName]), QueueID: text(f[amiQueue]),
	}}
	facts := &e.Facts
	m := readMember(f)
	facts.Agent = m.AgentReport()
	facts.State = m.State()

	if m.Paused {
		facts.Reason = m.PausedReason
	}

	switch name {
	case "QueueMemberAdded":
		facts.Name = event.NameAgentQueueJoin
	case "QueueMemberRemoved":
		// Offline applies only if it was the agent's last queue, which the state knows.
		facts.Name, facts.State, facts.Reason, facts.Agent = event.NameAgentQueueLeave, event.Offline, "", nil
	case "QueueMemberPause": // whether it is a break depends on the other queues and on calls, which the state knows
		facts.Name = event.NameAgentBreakEnd
		if m.Paused {
			facts.Name = event.NameAgentBreakStart
		}
	case "QueueMemberStatus":
		facts.Name = event.NameAgentState
	default: // QueueMemberPenalty, QueueMemberRinginuse
		facts.Reason, facts.State, facts.Agent = "", "", nil
	}

	return e
}

// queueCallEvent parses an AMI event about a call in a queue, or an agent of
// app_agent_pool. The call is the caller's channel.
func queueCallEvent(f *format.Fields, name string) format.Event {
	e := newLegEvent(f, event.QueueCall, event.NameOther, "")
	facts := &e.Facts
	facts.QueueID = text(f[amiQueue])
	facts.AgentID, facts.AgentName = text(f[amiInterface]), text(f[amiMemberName])
	e.Call.CustomerName = text(f[amiCallerName])
	hold := format.MillisOfSeconds(firstValue(f[amiHoldTime]))

	switch name {
	case "QueueCallerJoin":
		facts.Name, facts.State = event.NameQueueCallEntered, event.Waiting
		place, _ := format.Integer(firstValue(f[amiPosition]))
		facts.Position = event.PlaceOf(place)
	case "AgentCalled":
		facts.Name, facts.State = event.NameQueueCallOffered, event.Ringing
	case "AgentConnect":
		facts.Name, facts.State, facts.WaitMS = event.NameQueueCallAnswered, event.Talking, hold
	case "AgentComplete":
		facts.Name, facts.WaitMS = event.NameQueueCallEnded, hold
		facts.TalkMS = format.MillisOfSeconds(firstValue(f[amiTalkTime]))
		facts.Reason = text(f[amiReason])
		if facts.Reason == "caller" { // else its leg goes on: agent, transfer
			facts.State = event.Ended
		}
	case "AgentRingNoAnswer", "AgentDump": // AgentDump: hung up before being connected
		facts.Name = event.NameAgentNoAnswer
	case "QueueCallerAbandon":
		facts.Name, facts.State, facts.WaitMS = event.NameQueueCallAbandoned, event.Ended, hold
	case "QueueCallerLeave": // another event says whether the caller was connected, gave up or was sent on, if any does
		facts.State = event.Talking
	case "AgentLogin":
		return poolAgentEvent(f, event.NameAgentLogin, event.Available)
	case "AgentLogoff":
		return poolAgentEvent(f, event.NameAgentLogout, event.Offline)
	default: // AgentsComplete and other responses
		e.Type = event.Custom
	}

	return e
}

// extensionOf returns the name of the device of an agent's interface: 1001 of PJSIP/1001 and of
// Local/1001@agents/n.
func extensionOf(agentID string) string {
	_, device, ok := strings.Cut(agentID, "/")
	if !ok {
		return agentID
	}
	end := strings.IndexAny(device, "@/")
	if end >= 0 {
		device = device[:end]
	}
	return device
}

// poolAgentEvent parses the login or logout of an agent of app_agent_pool. Between them
// the agent's channel stays up.
func poolAgentEvent(f *format.Fields, name event.Name, state event.State) format.Event {
	e := newLegEvent(f, format.TypeOf(name), name, state)
	e.Facts.AgentID, e.Facts.CallID, e.Facts.Caller, e.Facts.Callee = text(f[amiAgent]), "", "", ""
	e.Facts.InteractionID, e.Facts.OriginationCallID = "", ""
	return e
}
