package kazoo

import (
	"strings"

	"trunkline/event"
	"trunkline/format"
)

// acdc is the format of Kazoo's ACDc: call and agent statistics, agent commands,
// and the queues' own messages.
var acdc = format.Format{
	Name: "kazoo.acdc", Topic: event.TopicRaw, Keys: eventKeys, Open: openEnvelope, Account: account,
	Event: func(f *format.Fields) (format.Event, error) {
		name := eventName(f)
		e := readEvent(f, acdcType(format.Text(f[kzCategory]), name))
		if at := acdcClock(f, name); at != 0 {
			e.Timestamp = at
		}
		return e, nil
	},
}

func acdcType(category, name string) event.Type {
	switch category {
	case "acdc_call_stat":
		if name != "flush" { // a command to the statistics, about no call
			return event.QueueCall
		}
	case "acdc_status_stat":
		return acdcStatus(name)
	case "agent":
		return acdcCommand(name)
	case "member": // the caller in the queue
		return event.QueueCall
	case "queue":
		if name == "agent_change" {
			return event.AgentState
		}
		if strings.HasPrefix(name, "member_") {
			return event.QueueCall
		}
	}
	return event.Custom
}

// acdcStatus returns the type of an agent's status. "ready" may follow a login, a
// break or a call, which the record does not say; so it is an agent state event.
func acdcStatus(name string) event.Type {
	switch name {
	case "logged_in":
		return event.AgentLogin
	case "logged_out":
		return event.AgentLogout
	case "paused":
		return event.AgentBreakStart
	case "resume":
		return event.AgentBreakEnd
	}
	return event.AgentState
}

func acdcCommand(name string) event.Type {
	switch name {
	case "login":
		return event.AgentLogin
	case "logout":
		return event.AgentLogout
	case "pause":
		return event.AgentBreakStart
	case "resume":
		return event.AgentBreakEnd
	case "login_queue":
		return event.AgentQueueJoin
	case "logout_queue":
		return event.AgentQueueLeave
	case "end_wrapup":
		return event.AgentState
	}
	return event.Custom
}

// acdcClock returns the time of a call statistic: each has a clock of its own
// name, beside those of the statistics before it.
func acdcClock(f *format.Fields, name string) int64 {
	switch name {
	case "waiting":
		return format.FirstClock(f[kzEntered])
	case "missed":
		return format.FirstClock(f[kzMissed])
	case "abandoned":
		return format.FirstClock(f[kzAbandoned])
	case "handled":
		return format.FirstClock(f[kzHandled])
	case "processed":
		return format.FirstClock(f[kzProcessed])
	}
	return 0
}
