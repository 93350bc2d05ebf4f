package freeswitch

import (
	"strings"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// FreeSWITCH events are one flat object of headers, all strings, as in the JSON of the
// event socket. Values may be URL-encoded (text/event-plain).
var eventKeys = jsonscan.KeysOf(
	"Event-Name", "Event-Subclass", "Event-Date-Timestamp",
	"Account-ID", "variable_account_id", "variable_ecallmgr_Account-ID",
	// mod_callcenter
	"CC-Action", "CC-Queue", "CC-Agent", "CC-Agent-Status", "CC-Agent-State",
	"CC-Member-UUID", "CC-Member-Session-UUID", "CC-Member-CID-Number", "CC-Member-CID-Name", "CC-Member-DNIS",
	"CC-Cause", "CC-Cancel-Reason", "CC-Hangup-Cause",
	"CC-Member-Joined-Time", "CC-Agent-Answered-Time", "CC-Bridge-Terminated-Time", "CC-Member-Leaving-Time",
	// channels
	"Unique-ID", "Call-Direction", "Answer-State", "Hangup-Cause",
	"Other-Type", "Other-Leg-Unique-ID", "Channel-Call-UUID", "att_xfer_original_call_id",
	"Caller-Orig-Caller-ID-Number", "Caller-Caller-ID-Number", "Caller-RDNIS", "Caller-Destination-Number",
	"variable_dialed_user",
	"variable_billmsec", "variable_billsec",
	"variable_cc_queue", "variable_cc_agent", "variable_cc_side", "variable_endpoint_disposition",
	"variable_transfer_to", "variable_refer_uuid", "variable_cc_agent_bridged",
	"variable_interaction_id", "variable_ecallmgr_Call-Interaction-ID", "variable_ecallmgr_Interaction-ID",
	"variable_origination_call_id", "variable_sip_origination_call_uuid", "variable_last_arg",
	"variable_cc_member_session_uuid", "variable_loopback_from_uuid", "variable_other_loopback_from_uuid",
	"variable_loopback_leg", "variable_other_loopback_leg_uuid",
	"variable_call_uuid", "variable_originating_leg_uuid", "variable_originator",
	// mod_sofia's registrations, mod_conference
	"from-user", "from-host", "user", "username", "host", "realm", "Action",
)

// plainEncoding is the event socket's own encoding.
var plainEncoding = map[string]format.Encoding{"text/event-plain": {Split: splitPlain, Copies: true}}

// Slots of eventKeys in the fields of an event.
const (
	fsName = iota
	fsSubclass
	fsTime // µs
	fsAccount
	fsVariableAccount
	fsKazooAccount
	fsAction
	fsQueue
	fsAgent
	fsAgentStatus
	fsAgentState
	fsMember
	fsMemberSession
	fsMemberNumber
	fsMemberName
	fsMemberDNIS
	fsCause
	fsCancelReason
	fsOriginateCause
	fsJoined
	fsAnswered
	fsTerminated
	fsLeaving
	fsUUID
	fsDirection
	fsAnswerState
	fsHangupCause
	fsOtherType
	fsOtherLeg
	fsCallUUID
	fsTransferred
	fsFirstCaller
	fsCaller
	fsRDNIS
	fsDestination
	fsDialedUser
	fsBillMillis
	fsBillSeconds
	fsVariableQueue
	fsVariableAgent
	fsVariableSide
	fsDisposition
	fsTransferTo
	fsReferLeg
	fsVariableBridged
	fsInteraction
	fsKazooCallInteraction
	fsKazooInteraction
	fsOrigination
	fsSIPOrigination
	fsLastArg
	fsVariableSession
	fsLoopbackFrom
	fsOtherLoopbackFrom
	fsLoopbackLeg
	fsOtherLoopbackLeg
	fsVariableCallUUID
	fsOriginatingLeg
	fsOriginator
	fsFromUser
	fsFromHost
	fsUser
	fsUsername
	fsHost
	fsRealm
	fsConferenceAction
)

// account returns the account that an event names. accountcode is a billing label and
// is not read.
func account(f *format.Fields) (string, error) {
	for _, slot := range [...]int{fsAccount, fsVariableAccount, fsKazooAccount} {
		account, err := format.AccountText(f[slot], "Account-ID")
		if account != "" || err != nil {
			return unescape(account), err
		}
	}
	return "", nil
}

// readEvent reads an event of either format, even if a feed names the wrong one of the
// two.
func readEvent(f *format.Fields) (format.Event, error) {
	var e format.Event
	action := decodeText(f[fsAction])
	if action != "" {
		e = readCallcenter(f, action)
	} else {
		e = readGeneralEvent(f)
	}

	e.Facts.TimestampMS = format.FirstTimestamp(f[fsTime])
	e.Timestamp = e.Facts.TimestampMS / 1000
	return e, nil
}

// firstText returns the first of the values that is not empty.
func firstText(f *format.Fields, slots ...int) string {
	for _, slot := range slots {
		s := decodeText(f[slot])
		if s != "" {
			return s
		}
	}
	return ""
}

// interactionID returns the id shared by all legs of the event's call, the same as in
// their call records (see legIDs).
func interactionID(f *format.Fields) string {
	ids := legIDs{
		sourceInteraction: firstText(f, fsInteraction, fsKazooCallInteraction, fsKazooInteraction),
		origination:       firstText(f, fsOrigination, fsSIPOrigination),
	}
	if ids.sourceInteraction == "" && ids.origination == "" {
		ids.origination = callIDInDialString(decodeText(f[fsLastArg]))
		ids.firstLeg = firstText(f, fsMemberSession, fsVariableSession, fsLoopbackFrom, fsOtherLoopbackFrom)
	}

	id := ids.explicitID()
	if id != "" {
		return id
	}

	ids.otherSide, ids.loopback = firstText(f, fsOtherLoopbackLeg), firstText(f, fsLoopbackLeg)
	ids.direction, ids.ownUUID = firstText(f, fsDirection), firstText(f, fsUUID)
	if f[fsOtherType].Is("originator") {
		ids.callers[0] = firstText(f, fsOtherLeg)
	}

	ids.callers[1] = firstText(f, fsVariableCallUUID, fsCallUUID)
	ids.callers[2] = firstText(f, fsOriginatingLeg)
	ids.callers[3] = firstText(f, fsOriginator)

	return ids.interactionID()
}

// originationCallID returns the id of a click to call, by the rule of
// leg.originationCallID.
func originationCallID(f *format.Fields) string {
	id := firstText(f, fsOrigination, fsSIPOrigination)
	if id != "" && firstText(f, fsLoopbackLeg) == "" && id == callIDInDialString(decodeText(f[fsLastArg])) {
		return ""
	}
	return id
}

// addressOfRecord returns the address of record of a registration. register and unregister have
// it in from-user and from-host, expire in user and host.
func addressOfRecord(f *format.Fields) string {
	user, host := firstText(f, fsFromUser, fsUser, fsUsername), firstText(f, fsFromHost, fsHost, fsRealm)
	if user == "" || host == "" || strings.Contains(user, "@") {
		return user
	}
	return user + "@" + host
}

// channelFacts returns the facts common to all channel events. The variable cc_agent
// stays on the caller's channel after the agent has passed the call on, so only a channel
// with the side agent is the agent's.
func channelFacts(f *format.Fields) event.Facts {
	facts := event.Facts{
		CallID:            firstText(f, fsUUID),
		QueueID:           firstText(f, fsVariableQueue),
		OriginationCallID: originationCallID(f),
		Caller:            firstText(f, fsFirstCaller, fsCaller),
		Callee:            firstText(f, fsDestination),
	}

	if f[fsVariableSide].Is("agent") {
		facts.AgentID = firstText(f, fsVariableAgent)
	}
	if facts.CallID != "" && !f[fsName].Is("DTMF") { // it has no variables: the state knows the call's interaction
		facts.InteractionID = interactionID(f)
	}

	user := firstText(f, fsDialedUser)
	if user != "" && f[fsDirection].Is("outbound") && f[fsLoopbackLeg] == nil {
		facts.Callee = user // the destination is the contact of the user's phone
	}

	return facts
}
