package event

// Type names what happened, from the specification's section "Events channel
// types".
type Type string

// The types listed in docs/channel.md. Every message has one of them.
const (
	QueueCall       Type = "svc_cc_queue_on_call_event"
	AgentState      Type = "svc_cc_queue_on_agent_state_event"
	AgentLogin      Type = "AGENT_LOGIN"
	AgentLogout     Type = "AGENT_LOGOUT"
	AgentStatus     Type = "AGENT_STATUS_CHANGE"
	AgentQueueJoin  Type = "AGENT_QUEUE_JOIN"
	AgentQueueLeave Type = "AGENT_QUEUE_LEAVE"
	AgentCallStart  Type = "AGENT_CALL_START"
	AgentCallEnd    Type = "AGENT_CALL_END"
	AgentBreakStart Type = "AGENT_BREAK_START"
	AgentBreakEnd   Type = "AGENT_BREAK_END"
	AgentTransfer   Type = "AGENT_TRANSFER"
	AgentConference Type = "AGENT_CONFERENCE"
	DeviceRegister  Type = "AGENT_DEVICE_REGISTER"
	DeviceGone      Type = "AGENT_DEVICE_UNREGISTER"
	AgentPerform    Type = "AGENT_PERFORMANCE"
	Custom          Type = "AGENT_CUSTOM_EVENT"
)

var knownTypes = [...]Type{
	QueueCall, AgentState, AgentLogin, AgentLogout, AgentStatus, AgentQueueJoin, AgentQueueLeave,
	AgentCallStart, AgentCallEnd, AgentBreakStart, AgentBreakEnd, AgentTransfer, AgentConference,
	DeviceRegister, DeviceGone, AgentPerform, Custom,
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

// TypeSet is a set of types and of the classes of our own events, which only logins
// that name their type receive.
type TypeSet uint32

// The classes of Trunkline's own events.
const (
	Own            TypeSet = 1 << 31 // format "trunkline.event", type AGENT_CUSTOM_EVENT
	OwnPerformance TypeSet = 1 << 30 // format "trunkline.performance", type AGENT_PERFORMANCE
)

// EveryType is the set that a login without event_types receives: every type of
// Types, but not Trunkline's own events.
const EveryType TypeSet = 1<<len(knownTypes) - 1

// SetOf returns the set that a login with these event_types receives; none means
// EveryType. ok is false when a name is unknown; unknown is the first such name.
func SetOf(names []string) (set TypeSet, unknown string, ok bool) {
	if len(names) == 0 {
		return EveryType, "", true
	}
	for _, name := range names {
		i, known := typeIndex[Type(name)]
		if !known {
			return 0, name, false
		}
		set |= 1 << i
		switch Type(name) {
		case Custom:
			set |= Own
		case AgentPerform:
			set |= OwnPerformance
		}
	}
	return set, "", true
}

// ClassOf returns the class of a message, from its headers alone: a message
// reaches the subscribers whose TypeSet contains it. An unknown type has none.
func ClassOf(t Type, originalFormat string) TypeSet {
	switch originalFormat {
	case FormatOwn:
		return Own
	case FormatPerformance:
		return OwnPerformance
	}
	i, ok := typeIndex[t]
	if !ok {
		return 0
	}
	return 1 << i
}
