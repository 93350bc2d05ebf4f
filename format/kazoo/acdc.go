package kazoo

import (
	"strings"

	"trunkline/event"
	"trunkline/format"
)

// acdcFormat is the format of Kazoo's ACDc: call and agent statistics, agent commands,
// and the messages between its queues and agents. ACDc reports the same event
// several times: a call that enters a queue is a member call, a member_add and the
// statistic "waiting".
var acdcFormat = format.Format{
	Name: "kazoo.acdc", Topic: event.TopicRaw, FromPlatform: true, Keys: callEventKeys, OpenEnvelope: openEnvelope,
	ReadAccount: account,
	DecodeEvent: func(f *format.Fields) (format.Event, error) {
		name := eventName(f)
		e := newEvent(f, event.Custom)
		ms := statisticTimestamp(f, name)
		if ms != 0 {
			e.Facts.TimestampMS, e.Timestamp = ms, ms/1000
		}

		switch format.Text(f[kzCategory]) {
		case "acdc_call_stat":
			if name != "flush" { // a command to the statistics, about no call
				e.Type = event.QueueCall
				addQueueCallFacts(f, &e.Facts)
				setCallStatistic(f, &e.Facts, name)
			}
		case "acdc_status_stat":
			e.Type = event.AgentState
			setAgentStatus(f, &e.Facts, name)
		case "agent":
			e.Type = setAgentCommand(f, &e.Facts, name)
		case "member": // the caller in the queue
			e.Type = event.QueueCall
			addQueueCallFacts(f, &e.Facts)
			setMemberMessage(f, &e.Facts, name)
		case "queue":
			e.Type = setQueueMessage(f, &e.Facts, name)
		}

		return e, nil
	},
}

// setCallStatistic sets the facts of a call's step. The step has a duration if the
// statistic also has the timestamp of the step before it.
func setCallStatistic(f *format.Fields, facts *event.Facts, name string) {
	switch name {
	case "waiting":
		facts.Name, facts.State = event.NameQueueCallEntered, event.Waiting
	case "missed":
		facts.Reason = format.Text(f[kzMissReason])
		if !format.IsCanceled(facts.Reason) {
			facts.Name = event.NameAgentNoAnswer
		}
	case "abandoned":
		setQueueExit(facts, format.Text(f[kzAbandonReason]))
		facts.WaitMS = format.DurationBetween(f[kzEntered], f[kzAbandoned])
	case "handled":
		facts.Name, facts.State = event.NameQueueCallAnswered, event.Talking
		facts.WaitMS = format.DurationBetween(f[kzEntered], f[kzHandled])
	case "processed":
		facts.Name, facts.State = event.NameQueueCallEnded, event.Ended
		facts.Reason = format.Text(f[kzHungUpBy])
		facts.WaitMS = format.DurationBetween(f[kzEntered], f[kzHandled])
		facts.TalkMS = format.DurationBetween(f[kzHandled], f[kzProcessed])
	}
}

// setQueueExit sets the facts of a call that left the queue before an agent answered.
// ACDc calls all of them abandoned; its reason distinguishes a caller who hung up from
// one who was sent on.
func setQueueExit(facts *event.Facts, reason string) {
	facts.Name, facts.Reason = event.NameQueueCallEnded, reason // a leg that is known goes on
	if reason == "" || reason == "member_hangup" {
		facts.Name, facts.State = event.NameQueueCallAbandoned, event.Ended
	}
}

// setAgentStatus sets the facts of an agent's status. "ready" may follow a login, a
// break or a call; only the previous state distinguishes them.
func setAgentStatus(f *format.Fields, facts *event.Facts, status string) {
	facts.Name = event.NameAgentState
	facts.CallID = format.Text(f[kzCall])
	facts.Caller = format.Text(f[kzCaller])

	switch status {
	case "ready":
		facts.State = event.Available
	case "logged_in":
		facts.Name, facts.State = event.NameAgentLogin, event.Available
	case "logged_out":
		facts.Name, facts.State = event.NameAgentLogout, event.Offline
	case "connecting":
		facts.State = event.Ringing
	case "connected", "outbound":
		facts.State = event.Talking
	case "wrapup":
		facts.State = event.WrapUp
	case "paused":
		facts.Name, facts.State = event.NameAgentBreakStart, event.Break
		facts.Reason = format.Text(f[kzPauseAlias])
	case "resume":
		facts.Name, facts.State = event.NameAgentBreakEnd, event.Available
	case "pending_logged_out": // logs out when the call is over
		facts.Name = event.NameOther
	default: // status_update, with a word of the platform's user
		facts.State = event.OtherState
	}
}

// AgentState returns the state of an agent with a status of ACDc, or "" if the
// status does not determine it.
func AgentState(status string) event.State {
	var facts event.Facts
	setAgentStatus(&format.Fields{}, &facts, status)
	return facts.State
}

// setAgentCommand sets the facts of a command to an agent.
func setAgentCommand(f *format.Fields, facts *event.Facts, name string) event.Type {
	switch name {
	case "login":
		setAgentStatus(f, facts, "logged_in")
	case "logout":
		setAgentStatus(f, facts, "logged_out")
	case "pause":
		setAgentStatus(f, facts, "paused")
	case "resume":
		setAgentStatus(f, facts, "resume")
	case "end_wrapup":
		setAgentStatus(f, facts, "ready")
	case "login_queue":
		facts.Name = event.NameAgentQueueJoin
	case "logout_queue":
		facts.Name = event.NameAgentQueueLeave
	default:
		return event.Custom
	}

	return event.AgentState // other names have a type of their own
}

// setMemberMessage sets the facts of a message about the caller in the queue.
func setMemberMessage(f *format.Fields, facts *event.Facts, name string) {
	switch name {
	case "call":
		facts.Name, facts.State = event.NameQueueCallEntered, event.Waiting
	case "connect_win":
		facts.Name, facts.State = event.NameQueueCallOffered, event.Ringing
	case "connect_accepted", "call_success":
		facts.Name, facts.State = event.NameQueueCallAnswered, event.Talking
	case "call_cancel":
		setQueueExit(facts, format.Text(f[kzReason]))
	case "call_fail", "call_failure":
		facts.Name, facts.State = event.NameQueueCallEnded, event.Ended
		facts.Reason = format.Text(f[kzFailureReason])
	case "hungup": // the statistic that follows reports whether the caller waited or talked
		facts.Name, facts.State = event.NameCallEnded, event.Ended
	}
}

// setQueueMessage sets the facts of a message of a queue. agent_change is the queue's
// view of an agent: "available" means that it does nothing at the moment;
// "unavailable" gives no reason.
func setQueueMessage(f *format.Fields, facts *event.Facts, name string) event.Type {
	switch {
	case name == "agent_change":
		switch format.Text(f[kzChange]) {
		case "available":
			facts.Name = event.NameAgentState
		case "ringing":
			facts.Name, facts.State = event.NameAgentState, event.Ringing
		case "busy":
			facts.Name, facts.State = event.NameAgentState, event.Talking
		}

		return event.AgentState
	case strings.HasPrefix(name, "member_"):
		addQueueCallFacts(f, facts)
		if name == "member_add" {
			facts.Name, facts.State = event.NameQueueCallEntered, event.Waiting
		}
		return event.QueueCall
	}

	return event.Custom
}

// statisticTimestamp returns the time of a call statistic in Unix milliseconds. Each
// statistic has its own timestamp field, besides those of the statistics before it.
func statisticTimestamp(f *format.Fields, name string) int64 {
	switch name {
	case "waiting":
		return format.FirstTimestamp(f[kzEntered])
	case "missed":
		return format.FirstTimestamp(f[kzMissed])
	case "abandoned":
		return format.FirstTimestamp(f[kzAbandoned])
	case "handled":
		return format.FirstTimestamp(f[kzHandled])
	case "processed":
		return format.FirstTimestamp(f[kzProcessed])
	}

	return 0
}
