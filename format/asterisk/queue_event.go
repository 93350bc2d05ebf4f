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
	facts.Agent = m.Said()
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

// Member holds the fields of an AMI event about a member of a queue.
type Member struct {
	Interface      string
	StateInterface string // whose state the status is; "": unknown
	Status         string // of the device, a number
	InCall         bool
	Paused         bool
	PausedReason   string
	LastPause      int64 // Unix seconds, 0 if none
	LastCall       int64 // Unix seconds, 0 if none
	WrapUpTime     int64 // seconds; the member's own, not that of its queue
	AtMS           int64 // Unix milliseconds of the event, 0 if unknown
}

func readMember(f *format.Fields) Member {
	m := Member{
		Interface: text(f[amiInterface]), StateInterface: text(f[amiStateInterface]), Status: text(f[amiStatus]),
		InCall: text(f[amiInCall]) == "1", Paused: text(f[amiPaused]) == "1", PausedReason: text(f[amiPausedReason]),
		AtMS: format.FirstTimestamp(firstValue(f[amiTime])),
	}
	m.LastPause, _ = format.Integer(firstValue(f[amiLastPause]))
	m.LastCall, _ = format.Integer(firstValue(f[amiLastCall]))
	m.WrapUpTime, _ = format.Integer(firstValue(f[amiWrapUpTime]))
	return m
}

// WrapUpEnd returns when the member's pause after its last call ends.
func (m *Member) WrapUpEnd() time.Time { return time.Unix(m.LastCall+m.WrapUpTime, 0) }

// poolAgent begins the state interface of a member that is an agent of app_agent_pool.
const poolAgent = "Agent:"

// Said returns what the fields say of the member.
func (m *Member) Said() *event.AgentSaid {
	said := &event.AgentSaid{Device: m.device(), InCall: m.InCall, Paused: m.Paused}
	if m.Paused {
		said.Reason, said.PausedSince = m.PausedReason, m.LastPause
	}

	if id, ok := strings.CutPrefix(m.StateInterface, poolAgent); ok { // whose logins and logouts have that id
		said.OtherID, said.Presence = id, event.Available
		if said.Device == event.DeviceUnreachable {
			said.Presence, said.Reason = event.Offline, ""
		}
	}

	if m.wrapsUp() {
		said.WrapUpUntilMS = m.WrapUpEnd().UnixMilli()
	}

	return said
}

// device returns the state of the member's phone. A Local channel is in use from the
// moment it is dialled, so that it may be ringing or talking, unless its state is that of a
// phone. An agent of app_agent_pool is busy before, during and after a call of the pool, and
// has no others.
func (m *Member) device() event.Device {
	switch m.Status {
	case "1": // not in use
		return event.DeviceIdle
	case "2", "7", "8": // in use, in use and ringing, on hold
		switch {
		case strings.HasPrefix(m.StateInterface, poolAgent) && !m.InCall:
			return event.DeviceWrapUp
		case strings.HasPrefix(m.Interface, "Local/") &&
			(m.StateInterface == "" || strings.HasPrefix(m.StateInterface, "Local/")):
			return event.DeviceUnknown
		}

		return event.DeviceInUse
	case "3": // busy: on a call, or do not disturb
		if strings.HasPrefix(m.StateInterface, poolAgent) && !m.InCall {
			return event.DeviceWrapUp
		}
		return event.DeviceBusy
	case "4", "5": // invalid, unavailable
		return event.DeviceUnreachable
	case "6":
		return event.DeviceRinging
	}

	return event.DeviceUnknown // of which its technology tells nothing: the queue calls it
}

func (m *Member) wrapsUp() bool {
	return m.LastCall > 0 && m.WrapUpTime > 0 && m.AtMS > 0 && m.AtMS < m.WrapUpEnd().UnixMilli()
}

// State returns the state of a member by its fields alone, or "" if they do not determine
// it.
func (m *Member) State() event.State {
	device := m.device()
	switch {
	case m.InCall && device != event.DeviceIdle, device == event.DeviceInUse:
		return event.Talking
	case device == event.DeviceRinging:
		return event.Ringing
	case device == event.DeviceWrapUp:
		return event.WrapUp
	case m.Paused:
		return event.Break
	case m.wrapsUp():
		return event.WrapUp
	case device == event.DeviceUnknown && m.Status != statusUnknown:
		return ""
	case device == event.DeviceBusy, device == event.DeviceUnreachable:
		return event.OtherState
	}

	return event.Available
}

// statusUnknown is the status of a phone of which its technology tells nothing.
const statusUnknown = "0"

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
