package asterisk

import (
	"strings"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// amiFormat is the format of an event of the manager interface (AMI).
var amiFormat = format.Format{
	Name: EventFormatName, Topic: event.TopicRaw, FromPlatform: true, ExtensionOf: extensionOf,
	Keys: format.CallEventKeys(jsonscan.KeysOf(
		"Event", "Account-ID", "Timestamp",
		"Queue", "Interface", "MemberName", "Status", "InCall", "Paused", "PausedReason", "Agent",
		"Uniqueid", "Linkedid", "CallerIDNum", "Exten", "ChannelState", "ChanVariable",
		"DestUniqueid", "DestLinkedid", "DestCallerIDNum", "DestExten", "DestChanVariable", "DialStatus",
		"HoldTime", "TalkTime", "Reason", "Cause-txt", "BridgeType", "BridgeNumChannels", "Direction",
		"TransfereeUniqueid", "TransfereeLinkedid", "TransfereeCallerIDNum", "TransfereeChanVariable",
		"TransfererUniqueid", "TransfererLinkedid", "OrigTransfererUniqueid", "OrigTransfererLinkedid",
		"Result", "Extension", "TransferTargetCallerIDNum",
		"Variable", "Value",
		"Peer", "PeerStatus", "ContactStatus", "EndpointName",
		"LastCall", "Wrapuptime", "StateInterface", "LastPause", "URI",
		"ParkeeUniqueid", "ParkeeLinkedid", "ParkeeCallerIDNum", "Position",
		"CallerIDName", "Channel",
	)),
	ReadAccount: account,
	DecodeEvent: func(f *format.Fields) (format.Event, error) {
		e := readEvent(f, text(f[amiEvent]))
		e.Facts.TimestampMS = format.FirstTimestamp(firstValue(f[amiTime]))
		e.Timestamp = e.Facts.TimestampMS / 1000
		return e, nil
	},
}

// Slots of the keys of amiFormat in the fields of a record.
const (
	amiEvent = iota
	amiAccount
	amiTime // only with timestampevents in manager.conf
	amiQueue
	amiInterface
	amiMemberName
	amiStatus
	amiInCall
	amiPaused
	amiPausedReason
	amiAgent
	amiUniqueID
	amiLinkedID
	amiCaller
	amiExten
	amiChannelState
	amiVariables
	amiDestUniqueID
	amiDestLinkedID
	amiDestCaller
	amiDestExten
	amiDestVariables
	amiDialStatus
	amiHoldTime // seconds
	amiTalkTime // seconds
	amiReason
	amiCause
	amiBridgeType
	amiBridgeChannels
	amiDirection
	amiTransfereeUniqueID
	amiTransfereeLinkedID
	amiTransfereeCaller
	amiTransfereeVariables
	amiTransfererUniqueID
	amiTransfererLinkedID
	amiOrigTransfererUniqueID
	amiOrigTransfererLinkedID
	amiResult
	amiExtension
	amiTargetCaller
	amiVariable
	amiValue
	amiPeer
	amiPeerStatus
	amiContactStatus
	amiEndpoint
	amiLastCall   // Unix seconds
	amiWrapUpTime // seconds
	amiStateInterface
	amiLastPause // Unix seconds
	amiContact
	amiParkeeUniqueID
	amiParkeeLinkedID
	amiParkeeCaller
	amiPosition
	amiCallerName
	amiChannel
)

// account returns the injected Account-ID; Asterisk never sends one: AccountCode is
// a billing label that the dialplan may use for anything, and AccountID is a user of
// the manager interface.
func account(f *format.Fields) (string, error) {
	return format.AccountText(firstValue(f[amiAccount]), "Account-ID")
}

// readEvent parses an AMI event by its name.
func readEvent(f *format.Fields, name string) format.Event {
	switch {
	case strings.HasPrefix(name, "QueueMember"):
		return queueMemberEvent(f, name)
	case strings.HasPrefix(name, "QueueCaller"), strings.HasPrefix(name, "Agent"):
		return queueCallEvent(f, name)
	}

	switch name {
	case "BlindTransfer", "AttendedTransfer":
		return transferEvent(f)
	case "ConfbridgeJoin":
		return newLegEvent(f, event.AgentConference, event.NameConferenceJoined, "")
	case "ConfbridgeLeave":
		return newLegEvent(f, event.AgentConference, event.NameConferenceLeft, "")
	case "ParkedCall", "UnParkedCall", "ParkedCallTimeOut", "ParkedCallGiveUp":
		return parkingEvent(f, name)
	case "ContactStatus", "PeerStatus":
		return deviceEvent(f)
	case "VarSet":
		return variableEvent(f)
	}

	return legEvent(f, name)
}

// legFacts returns the facts of an AMI event about a channel.
func legFacts(f *format.Fields) event.Facts {
	facts := event.Facts{
		CallID:            text(f[amiUniqueID]),
		InteractionID:     text(f[amiLinkedID]),
		OriginationCallID: channelVariable(f[amiVariables], originationVariablePrefix),
		Caller:            text(f[amiCaller]),
		Callee:            extension(f[amiExten]),
	}
	if facts.OriginationCallID == "" {
		facts.OriginationCallID = originationIDOfLinkedID(facts.InteractionID)
	}

	return facts
}

// newLegEvent returns an event about a channel.
func newLegEvent(f *format.Fields, t event.Type, name event.Name, state event.State) format.Event {
	facts := legFacts(f)
	facts.Name, facts.State = name, state
	return format.Event{Type: t, Facts: facts}
}

// legEvent parses an AMI event about a channel. A dialled leg has its own events when
// it rings and answers (Newstate), so Dial* events are mapped to NameOther.
func legEvent(f *format.Fields, name string) format.Event {
	e := newLegEvent(f, event.Custom, event.NameOther, "")
	facts := &e.Facts
	switch name {
	case "Newchannel":
		facts.Name = event.NameCallCreated
	case "Newstate":
		switch text(f[amiChannelState]) {
		case "5":
			facts.Name, facts.State = event.NameCallRinging, event.Ringing
		case "6":
			facts.Name, facts.State = event.NameCallAnswered, event.Talking
			e.IsLegOf = legOf(text(f[amiChannel]))
		}
	case "BridgeEnter": // the second channel completes the connection
		// A conference's bridge (base) and one of the agent pool (agent_hold) connect no two legs.
		if n, ok := format.Integer(firstValue(f[amiBridgeChannels])); ok && n >= 2 &&
			text(f[amiBridgeType]) == "basic" {
			facts.Name, facts.State = event.NameCallBridged, event.Talking
		}
	case "Hold":
		facts.Name, facts.State = event.NameCallHeld, event.Held
	case "Unhold":
		facts.Name, facts.State = event.NameCallResumed, event.Talking
	case "DTMFEnd":
		if text(f[amiDirection]) == "Received" { // the same digit appears as Sent on the bridged leg; count it once
			facts.Name = event.NameCallDTMF
		}
	case "Hangup":
		facts.Name, facts.State, facts.Reason = event.NameCallEnded, event.Ended, text(f[amiCause])
		e.IsLegOf = legOf(text(f[amiChannel]))
	case "DialBegin", "DialState", "DialEnd":
		facts.Reason = text(f[amiDialStatus])
		// About the leg that is dialled; the event's other members are of the one that dials.
		id := text(f[amiDestUniqueID])
		if id != "" {
			facts.CallID, facts.InteractionID = id, text(f[amiDestLinkedID])
			facts.OriginationCallID = channelVariable(f[amiDestVariables], originationVariablePrefix)
			facts.Caller, facts.Callee = text(f[amiDestCaller]), extension(f[amiDestExten])
		}
	}

	return e
}

// legOf returns format.Event.IsLegOf of a channel such as PJSIP/1001-0000002a. The second half of
// a Local channel is the dialplan's, not the agent's.
func legOf(channel string) func(agentID string) bool {
	end := strings.LastIndexByte(channel, '-')
	if end < 0 || strings.HasSuffix(channel, ";2") {
		return nil
	}

	device := channel[:end]
	return func(agentID string) bool {
		if name, ok := strings.CutPrefix(agentID, localPrefix); ok {
			name, _, _ = strings.Cut(name, "/") // without options
			agentID = localPrefix + name
		}
		return agentID == device
	}
}

// localPrefix begins the names of Local channels, and of members of queues that are called by one.
const localPrefix = "Local/"

// transferEvent parses a transfer. The call is the leg that was transferred, or the
// leg that transferred if Asterisk does not name the former (a bridge of several).
func transferEvent(f *format.Fields) format.Event {
	e := format.Event{Type: event.AgentTransfer}
	facts := &e.Facts
	for _, leg := range [...][2]int{
		{amiTransfereeUniqueID, amiTransfereeLinkedID},
		{amiTransfererUniqueID, amiTransfererLinkedID},
		{amiOrigTransfererUniqueID, amiOrigTransfererLinkedID},
	} {
		facts.CallID = text(f[leg[0]])
		if facts.CallID != "" {
			facts.InteractionID = text(f[leg[1]])
			break
		}
	}

	facts.Caller = text(f[amiTransfereeCaller])
	facts.Callee = text(f[amiExtension])
	if facts.Callee == "" {
		facts.Callee = text(f[amiTargetCaller])
	}

	facts.OriginationCallID = channelVariable(f[amiTransfereeVariables], originationVariablePrefix)
	result := text(f[amiResult])
	if result == "Success" || result == "" {
		facts.Name = event.NameCallTransferred
	} else {
		facts.Reason = result
	}

	return e
}

// parkingEvent parses an event about a parked call.
func parkingEvent(f *format.Fields, name string) format.Event {
	e := format.Event{Type: event.Custom, Facts: event.Facts{
		CallID: text(f[amiParkeeUniqueID]), InteractionID: text(f[amiParkeeLinkedID]), Caller: text(f[amiParkeeCaller]),
	}}

	switch name {
	case "ParkedCall":
		e.Facts.Name, e.Facts.State, e.Facts.Reason = event.NameCallHeld, event.Held, event.ReasonParked
	case "UnParkedCall", "ParkedCallTimeOut":
		e.Facts.Name, e.Facts.State = event.NameCallResumed, event.Talking
	default: // the caller hung up: its Hangup follows
		e.Facts.Name = event.NameOther
	}

	return e
}

// pjsip begins the names of phones of PJSIP as members of queues have them. ContactStatus
// has the endpoint without it, and is about one of its registrations.
const pjsip = "PJSIP/"

// deviceEvent parses the state of a registration. A phone that answers late (Lagged) is
// still registered; one that does not answer (Unreachable) cannot be called.
func deviceEvent(f *format.Fields) format.Event {
	facts := event.Facts{AgentID: text(f[amiEndpoint]), Contact: text(f[amiContact])}
	status := text(f[amiContactStatus])
	if status == "" {
		facts.AgentID, status = text(f[amiPeer]), text(f[amiPeerStatus])
	} else if facts.AgentID != "" {
		facts.AgentID = pjsip + facts.AgentID
	}

	switch status {
	case "Reachable", "NonQualified", "Updated", "Registered", "Lagged":
		facts.Name, facts.State = event.NameDeviceRegistered, event.Registered
	case "Removed", "Unregistered", "Unreachable":
		facts.Name, facts.State, facts.Reason = event.NameDeviceUnregistered, event.Unregistered, status
	default:
		// With a contact, other would say that the registration is gone.
		facts.Reason, facts.Contact = status, ""
	}

	return format.Event{Type: format.TypeOf(facts.Name), Facts: facts}
}

// variableEvent parses a channel variable. Queue() sets QUEUESTATUS to the reason a
// caller left the queue without an agent, after QueueCallerAbandon.
func variableEvent(f *format.Fields) format.Event {
	e := newLegEvent(f, event.Custom, event.NameOther, "")
	if text(f[amiVariable]) != "QUEUESTATUS" {
		return e
	}

	e.Call.CustomerName = text(f[amiCallerName])
	e.Facts.Reason = text(f[amiValue])
	switch e.Facts.Reason {
	case "TIMEOUT", "LEAVEEMPTY", "LEAVEUNAVAIL", "WITHDRAW": // its leg goes on in the dialplan
		e.Type, e.Facts.Name, e.Facts.State = event.QueueCall, event.NameQueueCallEnded, event.Talking
	}

	return e
}
