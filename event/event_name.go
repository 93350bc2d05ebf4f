package event

// Name is an event name of docs/facts.md. Equal events have the same name on every
// platform.
type Name string

// The names. Every message has one of them in metadata.facts and in its header
// "name".
const (
	NameAgentLogin      Name = "agent.login"
	NameAgentLogout     Name = "agent.logout"
	NameAgentBreakStart Name = "agent.break_start"
	NameAgentBreakEnd   Name = "agent.break_end"
	NameAgentState      Name = "agent.state"
	NameAgentQueueJoin  Name = "agent.queue_join"
	NameAgentQueueLeave Name = "agent.queue_leave"
	NameAgentNoAnswer   Name = "agent.no_answer"

	NameQueueCallEntered   Name = "queue.call_entered"
	NameQueueCallOffered   Name = "queue.call_offered"
	NameQueueCallAnswered  Name = "queue.call_answered"
	NameQueueCallAbandoned Name = "queue.call_abandoned"
	NameQueueCallEnded     Name = "queue.call_ended"

	NameCallCreated     Name = "call.created"
	NameCallRinging     Name = "call.ringing"
	NameCallAnswered    Name = "call.answered"
	NameCallBridged     Name = "call.bridged"
	NameCallHeld        Name = "call.held"
	NameCallResumed     Name = "call.resumed"
	NameCallTransferred Name = "call.transferred"
	NameCallDTMF        Name = "call.dtmf"
	NameCallEnded       Name = "call.ended"

	NameConferenceJoined   Name = "conference.joined"
	NameConferenceLeft     Name = "conference.left"
	NameDeviceRegistered   Name = "device.registered"
	NameDeviceUnregistered Name = "device.unregistered"

	NameCallProgress    Name = "call.progress"
	NameRecordingStored Name = "recording.stored"
	NameAISession       Name = "ai.session"
	NameControlAction   Name = "control.action"
	NameCallTranscript  Name = "call.transcript"

	NameAlertStarted     Name = "alert.started"
	NameAlertEnded       Name = "alert.ended"
	NameFeedConnected    Name = "feed.connected"
	NameFeedDisconnected Name = "feed.disconnected"
	NameOther            Name = "other"
)

var allNames = [...]Name{
	NameAgentLogin, NameAgentLogout, NameAgentBreakStart, NameAgentBreakEnd, NameAgentState,
	NameAgentQueueJoin, NameAgentQueueLeave, NameAgentNoAnswer,
	NameQueueCallEntered, NameQueueCallOffered, NameQueueCallAnswered, NameQueueCallAbandoned, NameQueueCallEnded,
	NameCallCreated, NameCallRinging, NameCallAnswered, NameCallBridged, NameCallHeld, NameCallResumed,
	NameCallTransferred, NameCallDTMF, NameCallEnded,
	NameConferenceJoined, NameConferenceLeft, NameDeviceRegistered, NameDeviceUnregistered,
	NameCallProgress, NameRecordingStored, NameAISession, NameControlAction, NameCallTranscript,
	NameAlertStarted, NameAlertEnded, NameFeedConnected, NameFeedDisconnected, NameOther,
}

// Names returns every name, in the order of docs/facts.md.
func Names() []Name { return append([]Name(nil), allNames[:]...) }

// Type returns the type of every message with the name, on every platform. ok is false
// for names whose type the format chooses.
func (n Name) Type() (t Type, ok bool) {
	switch n {
	case NameAgentLogin:
		return AgentLogin, true
	case NameAgentLogout:
		return AgentLogout, true
	case NameAgentBreakStart:
		return AgentBreakStart, true
	case NameAgentBreakEnd:
		return AgentBreakEnd, true
	case NameAgentQueueJoin:
		return AgentQueueJoin, true
	case NameAgentQueueLeave:
		return AgentQueueLeave, true
	}

	return "", false
}
