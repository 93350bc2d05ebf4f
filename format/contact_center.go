package format

import (
	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// ContactCenterKeys numbers, from slot first on, the members for agents and calls of
// sources that use Trunkline's event types (svc.cc, generic). Such a source
// chooses its spelling, Dash-Case or snake_case, and its words for states.
func ContactCenterKeys(first int) jsonscan.Keys {
	keys := BothSpellings(
		"Agent-ID", "Agent-Name", "To-Agent-ID", "Agent-State", "Agent-Status", "Call-ID", "Interaction-ID",
		"Origination-Call-ID",
		"Event", "Reason", "Device-ID", "Caller-ID-Number", "Callee-ID-Number", "CDR", "Customer-Info", "History",
	)
	keys["state"], keys["State"] = ccState, ccState
	keys["status"], keys["Status"] = ccStatus, ccStatus
	keys["caller"], keys["callee"] = ccCaller, ccCallee
	keys["History"], keys["history"] = ccHistory+jsonscan.LastElement, ccHistory+jsonscan.LastElement

	for name := range keys {
		keys[name] += first
	}

	return keys
}

// Slots of ContactCenterKeys, from its first on.
const (
	ccAgent = iota
	ccAgentName
	ccToAgent
	ccState
	ccStatus
	ccCall
	ccInteraction
	ccOrigination
	ccEvent
	ccReason
	ccDevice
	ccCaller
	ccCallee
	ccCDR
	ccCustomer
	ccHistory // the last entry
)

var (
	cdrKeys = BothSpellings("Call-ID", "Event", "Interaction-ID", "Caller-ID-Number", "Callee-ID-Number",
		"Conference-ID", "channel")
	channelKeys  = jsonscan.KeysOf("Conference-Channel-Vars")
	customerKeys = jsonscan.KeysOf("customer_uuid", "customer_callerid_number", "customer_callerid_name")
	historyKeys  = jsonscan.KeysOf("type", "ext", "event", "first_name", "last_name")
)

// Slots of cdrKeys.
const (
	cdrCallID = iota
	cdrEvent
	cdrInteraction
	cdrCaller
	cdrCallee
	cdrConference
	cdrChannel
	cdrSlots
)

// Slots of customerKeys.
const (
	customerCallID = iota
	customerCaller
	customerName
	customerSlots
)

// Slots of historyKeys.
const (
	historyType = iota
	historyExtension
	historyEvent
	historyFirstName
	historyLastName
	historySlots
)

// AddContactCenter adds the facts of an event, whose type is set and whose members begin at
// f[0] in the order of ContactCenterKeys.
func AddContactCenter(f []jsonscan.Value, e *Event) {
	t, facts := e.Type, &e.Facts
	facts.AgentID, facts.AgentName = Text(f[ccAgent]), Text(f[ccAgentName])
	facts.CallID, facts.Reason = Text(f[ccCall]), Text(f[ccReason])
	facts.InteractionID, facts.OriginationCallID = Text(f[ccInteraction]), Text(f[ccOrigination])
	facts.Caller, facts.Callee = Text(f[ccCaller]), Text(f[ccCallee])
	state, status := ParseAgentState(textBytes(f[ccState])), ParseAgentState(textBytes(f[ccStatus]))
	agent := AgentState(state, status)

	setNameAndState := func(name event.Name, s, otherwise event.State) {
		facts.Name, facts.State = name, s
		if s == "" {
			facts.State = otherwise
		}
	}

	switch t {
	case event.QueueCall:
		addCallEvent(f, e)
	case event.AgentState, event.AgentStatus:
		if agent != "" {
			setNameAndState(event.NameAgentState, agent, "")
		}
	case event.AgentLogin:
		setNameAndState(event.NameAgentLogin, agent, event.Available)
	case event.AgentLogout:
		setNameAndState(event.NameAgentLogout, event.Offline, "")
	case event.AgentBreakStart:
		setNameAndState(event.NameAgentBreakStart, event.Break, "")
	case event.AgentBreakEnd:
		setNameAndState(event.NameAgentBreakEnd, agent, event.Available)
	case event.AgentQueueJoin:
		setNameAndState(event.NameAgentQueueJoin, agent, "")
	case event.AgentQueueLeave:
		setNameAndState(event.NameAgentQueueLeave, agent, "")
	case event.AgentCallStart:
		setNameAndState(event.NameCallAnswered, event.Talking, "")
	case event.AgentCallEnd: // the state is that of the agent after the call
		setNameAndState(event.NameCallEnded, agent, event.WrapUp)
	case event.AgentTransfer:
		setNameAndState(event.NameCallTransferred, "", "")
		to := Text(f[ccToAgent])
		if to != "" { // the agent that has the call now
			facts.AgentID, facts.AgentName = to, ""
		}
	case event.DeviceRegister:
		setNameAndState(event.NameDeviceRegistered, event.Registered, "")
	case event.DeviceUnregister:
		setNameAndState(event.NameDeviceUnregistered, event.Unregistered, "")
	case event.AgentConference:
		if step, ok := ParseCallStep(textBytes(f[ccEvent])); ok &&
			(step.Name == event.NameConferenceJoined || step.Name == event.NameConferenceLeft) {
			facts.Name = step.Name
		}
	}

	device := Text(f[ccDevice])
	if device != "" && (t == event.DeviceRegister || t == event.DeviceUnregister) {
		facts.AgentID = device
	}
}

// addCallEvent adds the facts and the details of a call event. The word for the
// call's step is the CDR's event, or else the last one of its history, which also
// names the agent.
func addCallEvent(f []jsonscan.Value, e *Event) {
	var cdr [cdrSlots]jsonscan.Value
	cdrKeys.ScanObject(f[ccCDR], cdr[:])
	var customer [customerSlots]jsonscan.Value
	customerKeys.ScanObject(f[ccCustomer], customer[:])
	var conference [1]jsonscan.Value
	channelKeys.ScanObject(cdr[cdrChannel], conference[:])

	facts := &e.Facts
	e.Call.CustomerName = Text(customer[customerName])
	e.Call.SetConference(cdr[cdrConference], conference[0])

	facts.CallID = FirstText(cdr[cdrCallID], f[ccCall], customer[customerCallID])
	facts.InteractionID = FirstText(f[ccInteraction], cdr[cdrInteraction])
	facts.Caller = FirstText(f[ccCaller], customer[customerCaller], cdr[cdrCaller])
	facts.Callee = FirstText(f[ccCallee], cdr[cdrCallee])

	known := setCallStep(facts, cdr[cdrEvent], f[ccEvent], f[ccState])
	// The history is read only for what the other members do not tell.
	if !known || facts.AgentID == "" && facts.State != event.Waiting {
		var lastEntry [historySlots]jsonscan.Value
		historyKeys.ScanObject(f[ccHistory], lastEntry[:])
		if !known {
			setCallStep(facts, lastEntry[historyEvent])
		}
		if facts.AgentID == "" && lastEntry[historyType].Is("agent") {
			facts.AgentID = Text(lastEntry[historyExtension])
			facts.AgentName = fullName(Text(lastEntry[historyFirstName]), Text(lastEntry[historyLastName]))
		}
	}

	if facts.State == event.Waiting { // whichever agent it was offered to before
		facts.AgentID, facts.AgentName = "", ""
	}
}

// setCallStep sets the name and state from the first of the values that is a known
// word for a call's step.
func setCallStep(facts *event.Facts, values ...jsonscan.Value) (known bool) {
	for _, v := range values {
		if step, ok := ParseCallStep(textBytes(v)); ok {
			facts.Name, facts.State = step.Name, step.State
			return true
		}
	}
	return false
}

func textBytes(v jsonscan.Value) []byte {
	text, _ := v.Text()
	return text
}

func fullName(first, last string) string {
	if first != "" && last != "" {
		return first + " " + last
	}
	return first + last
}
