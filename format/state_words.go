package format

import "trunkline/event"

// Sources without a fixed vocabulary (svc.cc, generic, Qubicle) share the words of
// this file. Other sources have their words in their own folder.

// CallStep is the meaning of a word for the step of a call in a queue.
type CallStep struct {
	Name  event.Name
	State event.State // of the call; "": unknown
}

// ParseCallStep returns the meaning of a word, in any spelling; ok is false for unknown
// words.
func ParseCallStep(word []byte) (w CallStep, ok bool) {
	var buf [maxWordBytes]byte
	switch string(normalizeWord(&buf, word)) {
	case "waiting", "call", "member_add", "create", "created", "join_queue", "channel_create", "entered", "queued",
		"member_queue_start", "member_queue_resume":
		return CallStep{event.NameQueueCallEntered, event.Waiting}, true
	case "missed", "bridge_agent_fail":
		return CallStep{Name: event.NameAgentNoAnswer}, true
	case "channel_unbridge": // back in the queue
		return CallStep{event.NameOther, event.Waiting}, true
	case "agent_offering", "offering", "offered", "connecting", "ringing", "channel_progress", "channel_progress_media":
		return CallStep{event.NameQueueCallOffered, event.Ringing}, true
	case "bridge_agent_start", "handled", "connect_accepted", "call_success", "pickup", "connected",
		"answered", "bridged", "channel_answer", "channel_bridge":
		return CallStep{event.NameQueueCallAnswered, event.Talking}, true
	case "transferred":
		return CallStep{event.NameCallTransferred, event.Talking}, true
	case "abandoned", "call_cancel":
		return CallStep{event.NameQueueCallAbandoned, event.Ended}, true
	case "bridge_agent_end", "member_queue_end", "processed", "hungup", "call_failure",
		"delete", "deleted", "hangup", "ended", "completed",
		"channel_hangup", "channel_hangup_complete", "channel_destroy":
		return CallStep{event.NameQueueCallEnded, event.Ended}, true
	case "add_member":
		return CallStep{Name: event.NameConferenceJoined}, true
	case "del_member": // a participant who leaves the conference of a call leaves the call
		return CallStep{event.NameConferenceLeft, event.Ended}, true
	}

	return CallStep{}, false
}

// ParseAgentState returns the state for a word, "" for an empty word and OtherState for an
// unknown one.
func ParseAgentState(word []byte) event.State {
	var buf [maxWordBytes]byte
	switch string(normalizeWord(&buf, word)) {
	case "":
		return ""
	case "logged_out", "loggedout", "logout", "offline":
		return event.Offline
	case "available", "available_(on_demand)", "ready", "idle", "waiting", "logged_in", "loggedin", "login", "online",
		"resume", "resumed":
		return event.Available
	case "ringing", "receiving", "offering", "offered", "connecting", "alerting":
		return event.Ringing
	case "talking", "on_call", "oncall", "in_call", "in_a_call", "in_a_queue_call", "on_a_call", "connected",
		"answered", "busy", "outbound":
		return event.Talking
	case "wrapup", "wrap_up", "after_call", "after_call_work", "acw":
		return event.WrapUp
	case "break", "on_break", "pause", "paused", "away", "not_ready":
		return event.Break
	}

	return event.OtherState
}

// AgentState combines an agent's current activity with its presence at work, for
// sources that report both. A call takes precedence over a break: a break taken during
// a call begins after it.
func AgentState(activity, presence event.State) event.State {
	switch {
	case activity == event.Offline || presence == event.Offline:
		return event.Offline
	case activity == event.Ringing || activity == event.Talking || activity == event.WrapUp:
		return activity
	case presence == event.Break || activity == "" || activity == event.OtherState && presence != "":
		return presence
	}
	return activity
}

// IsCanceled reports whether an agent's phone stopped ringing for a reason other than
// a missing answer: another agent was faster, or the caller hung up.
func IsCanceled(reason string) bool {
	return reason == "LOSE_RACE" || reason == "ORIGINATOR_CANCEL"
}

// maxWordBytes is longer than every known word.
const maxWordBytes = 32

// normalizeWord returns the word in lower case with underscores, in buf. It returns a
// longer one unchanged, since that is unknown.
func normalizeWord(buf *[maxWordBytes]byte, word []byte) []byte {
	if len(word) > maxWordBytes {
		return word
	}

	for i, c := range word {
		switch {
		case c == '-' || c == ' ':
			c = '_'
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		}

		buf[i] = c
	}

	return buf[:len(word)]
}

// TypeOf returns the type of an event of which only the name is known.
func TypeOf(name event.Name) event.Type {
	if t, ok := name.Type(); ok {
		return t
	}

	switch name {
	case event.NameAgentState, event.NameAgentNoAnswer:
		return event.AgentState
	case event.NameQueueCallEntered, event.NameQueueCallOffered, event.NameQueueCallAnswered,
		event.NameQueueCallAbandoned, event.NameQueueCallEnded:
		return event.QueueCall
	case event.NameCallTransferred:
		return event.AgentTransfer
	case event.NameConferenceJoined, event.NameConferenceLeft:
		return event.AgentConference
	case event.NameDeviceRegistered:
		return event.DeviceRegister
	case event.NameDeviceUnregistered:
		return event.DeviceUnregister
	}

	return event.Custom
}

// TypeOfAgentLeg returns the type of an event of the agent's own leg of a call in a queue: its
// answer and, if it was answered, its end are the begin and the end of the agent's call.
func TypeOfAgentLeg(f *event.Facts) event.Type {
	switch {
	case f.AgentID == "":
	case f.Name == event.NameCallAnswered:
		return event.AgentCallStart
	case f.Name == event.NameCallEnded && f.TalkMS.Known:
		return event.AgentCallEnd
	}
	return event.Custom
}
