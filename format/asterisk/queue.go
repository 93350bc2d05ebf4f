package asterisk

import (
	"strings"
	"time"

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
	paused := m.Paused
	if paused {
		facts.Reason = text(f[amiPausedReason])
	}
	state := m.State()
	switch name {
	case "QueueMemberAdded":
		facts.Name, facts.State = event.NameAgentQueueJoin, state
	case "QueueMemberRemoved":
		// Offline applies only if it was the agent's last queue, which the state knows.
		facts.Name, facts.State, facts.Reason = event.NameAgentQueueLeave, event.Offline, ""
	case "QueueMemberPause":
		switch {
		case paused && (state == event.Talking || state == event.Ringing):
			// The break begins with the QueueMemberStatus at the end of the call.
			facts.Name, facts.State = event.NameAgentState, state
		case paused:
			facts.Name, facts.State = event.NameAgentBreakStart, event.Break
		case state == "":
			facts.Name, facts.State = event.NameAgentBreakEnd, event.Available
		default:
			facts.Name, facts.State = event.NameAgentBreakEnd, state
		}
	case "QueueMemberStatus":
		if state != "" {
			facts.Name, facts.State = event.NameAgentState, state
		}
	default: // QueueMemberPenalty, QueueMemberRinginuse
		facts.Reason = ""
	}
	return e
}

// Member holds the fields of an AMI event about a member of a queue.
type Member struct {
	Interface  string
	Status     string // of the device, a number
	InCall     bool
	Paused     bool
	LastCall   int64 // Unix seconds, 0 if none
	WrapUpTime int64 // seconds; the member's own, not that of its queue
	AtMS       int64 // Unix milliseconds of the event, 0 if unknown
}

func readMember(f *format.Fields) Member {
	m := Member{
		Interface: text(f[amiInterface]), Status: text(f[amiStatus]), InCall: text(f[amiInCall]) == "1",
		Paused: text(f[amiPaused]) == "1", AtMS: format.FirstTimestamp(firstValue(f[amiTime])),
	}
	m.LastCall, _ = format.Integer(firstValue(f[amiLastCall]))
	m.WrapUpTime, _ = format.Integer(firstValue(f[amiWrapUpTime]))
	return m
}

// WrapUpEnd returns when the member's pause after its last call ends.
func (m *Member) WrapUpEnd() time.Time { return time.Unix(m.LastCall+m.WrapUpTime, 0) }

// State returns the state of a member by its device, or "" if the device does not determine it: a Local
// channel is in use from the moment it is dialled, so that it may be ringing or talking.
func (m *Member) State() event.State {
	var device event.State
	switch m.Status {
	case "1": // not in use
		device = event.Available
		if m.LastCall > 0 && m.WrapUpTime > 0 && m.AtMS > 0 && m.AtMS < m.WrapUpEnd().UnixMilli() {
			device = event.WrapUp
		}
	case "2", "3", "7", "8": // in use, busy, in use and ringing, on hold
		device = event.Talking
		if !m.InCall && strings.HasPrefix(m.Interface, "Local/") {
			device = ""
		}
	case "6":
		device = event.Ringing
	default: // unknown, invalid, unavailable
		device = event.OtherState
	}
	switch {
	case m.InCall:
		return event.Talking
	case m.Paused && device != event.Ringing && device != event.Talking:
		return event.Break
	}
	return device
}

// queueCallEvent parses an AMI event about a call in a queue, or an agent of
// app_agent_pool. The call is the caller's channel.
func queueCallEvent(f *format.Fields, name string) format.Event {
	e := newLegEvent(f, event.QueueCall, event.NameOther, "")
	facts := &e.Facts
	facts.QueueID = text(f[amiQueue])
	facts.AgentID, facts.AgentName = text(f[amiInterface]), text(f[amiMemberName])
	hold := format.MillisOfSeconds(firstValue(f[amiHoldTime]))
	switch name {
	case "QueueCallerJoin":
		facts.Name, facts.State = event.NameQueueCallEntered, event.Waiting
	case "AgentCalled":
		facts.Name, facts.State = event.NameQueueCallOffered, event.Ringing
	case "AgentConnect":
		facts.Name, facts.State, facts.WaitMS = event.NameQueueCallAnswered, event.Talking, hold
	case "AgentComplete":
		facts.Name, facts.State, facts.WaitMS = event.NameQueueCallEnded, event.Ended, hold
		facts.TalkMS = format.MillisOfSeconds(firstValue(f[amiTalkTime]))
		facts.Reason = text(f[amiReason]) // caller, agent or transfer
	case "AgentRingNoAnswer", "AgentDump": // AgentDump: hung up before being connected
		facts.Name = event.NameAgentNoAnswer
	case "QueueCallerAbandon":
		facts.Name, facts.State, facts.WaitMS = event.NameQueueCallAbandoned, event.Ended, hold
	case "QueueCallerLeave": // another event reports whether the caller was connected, gave up or was sent on, if any does
	case "AgentLogin":
		return poolAgentEvent(f, event.NameAgentLogin, event.Available)
	case "AgentLogoff":
		return poolAgentEvent(f, event.NameAgentLogout, event.Offline)
	default: // AgentsComplete and other responses
		e.Type = event.Custom
	}
	return e
}

// poolAgentEvent parses the login or logout of an agent of app_agent_pool. Between them
// the agent's channel stays up.
func poolAgentEvent(f *format.Fields, name event.Name, state event.State) format.Event {
	e := newLegEvent(f, format.TypeOf(name), name, state)
	e.Facts.AgentID, e.Facts.CallID, e.Facts.Caller, e.Facts.Callee = text(f[amiAgent]), "", "", ""
	e.Facts.InteractionID, e.Facts.OriginationCallID = "", ""
	return e
}
