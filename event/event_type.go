package event

// Type is an event type. docs/channel.md lists them.
type Type string

// Every message has one of these types.
const (
	QueueCall        Type = "svc_cc_queue_on_call_event"
	AgentState       Type = "svc_cc_queue_on_agent_state_event"
	AgentLogin       Type = "AGENT_LOGIN"
	AgentLogout      Type = "AGENT_LOGOUT"
	AgentStatus      Type = "AGENT_STATUS_CHANGE"
	AgentQueueJoin   Type = "AGENT_QUEUE_JOIN"
	AgentQueueLeave  Type = "AGENT_QUEUE_LEAVE"
	AgentCallStart   Type = "AGENT_CALL_START"
	AgentCallEnd     Type = "AGENT_CALL_END"
	AgentBreakStart  Type = "AGENT_BREAK_START"
	AgentBreakEnd    Type = "AGENT_BREAK_END"
	AgentTransfer    Type = "AGENT_TRANSFER"
	AgentConference  Type = "AGENT_CONFERENCE"
	DeviceRegister   Type = "AGENT_DEVICE_REGISTER"
	DeviceUnregister Type = "AGENT_DEVICE_UNREGISTER"
	AgentPerformance Type = "AGENT_PERFORMANCE"
	Custom           Type = "AGENT_CUSTOM_EVENT"
)

var knownTypes = [...]Type{
	QueueCall, AgentState, AgentLogin, AgentLogout, AgentStatus, AgentQueueJoin, AgentQueueLeave,
	AgentCallStart, AgentCallEnd, AgentBreakStart, AgentBreakEnd, AgentTransfer, AgentConference,
	DeviceRegister, DeviceUnregister, AgentPerformance, Custom,
}

var typeIndex = func() map[Type]int {
	m := make(map[Type]int, len(knownTypes))
	for i, t := range knownTypes {
		m[t] = i
	}
	return m
}()

// Types returns every type, in the order of docs/channel.md.
func Types() []Type { return append([]Type(nil), knownTypes[:]...) }

// Known reports whether t is one of Types.
func (t Type) Known() bool { _, ok := typeIndex[t]; return ok }
