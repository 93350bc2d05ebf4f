package kazoo

import (
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

// Kazoo spells a key Dash-Case on its message bus and snake_case in documents,
// webhooks and on the Blackhole socket; both are read here.
var eventKeys = format.BothSpellings(
	"Event-Category", "Event-Name", "Account-ID", "Queue-ID", "Custom-Channel-Vars",
	"Timestamp", "Event-Timestamp", "Event-Unix-Timestamp", "Now",
	"Entered-Timestamp", "Miss-Timestamp", "Abandon-Timestamp", "Handled-Timestamp", "Processed-Timestamp",
	"Join-Queue-ID", "Hook-Event", "Call-State",
	"Action", "Data", "Name", "Args",
	// agents
	"Agent-ID", "Recipient-ID", "Username", "State", "Change", "Pause-Alias", "Reason",
	// calls in a queue
	"Call-ID", "Session-ID", "Member-Call-ID", "Call", "Caller-ID-Number", "Callee-ID-Number",
	"Miss-Reason", "Abandon-Reason", "Failure-Reason", "Hung-Up-By",
	// channels and conferences
	"Interaction-ID", "Call-Interaction", "Origination-Call-ID", "Originating-Leg-UUID",
	"Other-Leg-Call-ID", "Call-Direction", "Hangup-Cause", "Billing-Seconds", "Transfer-To", "Event",
	// registrations
	"Realm",
	// call events
	"Caller-ID-Name", "Conference-ID", "Conference-Channel-Vars",
)

// callEventKeys are eventKeys with the members of a call event.
var callEventKeys = format.CallEventKeys(eventKeys)

// Slots of eventKeys, and of channelVarKeys behind them, in the fields of a message.
const (
	kzCategory = iota
	kzName
	kzAccount
	kzQueue
	kzChannelVars
	kzTime
	kzEventTime
	kzUnixTime
	kzNow
	kzEntered
	kzMissed
	kzAbandoned
	kzHandled
	kzProcessed
	kzJoinQueue
	kzHook
	kzCallState
	kzAction
	kzData
	kzEnvelopeName
	kzArgs
	kzAgent
	kzRecipient
	kzUsername
	kzState
	kzChange
	kzPauseAlias
	kzReason
	kzCall
	kzSession
	kzMemberCall
	kzCallObject
	kzCaller
	kzCallee
	kzMissReason
	kzAbandonReason
	kzFailureReason
	kzHungUpBy
	kzInteraction
	kzCallInteraction
	kzOrigination
	kzOriginatingLeg
	kzOtherLeg
	kzDirection
	kzCause
	kzBilling
	kzTransferTo
	kzConferenceEvent
	kzRealm
	kzCallerName
	kzConference
	kzConferenceVars
	// Members of Custom-Channel-Vars, which openEnvelope reads.
	kzVarAccount
	kzVarQueue
	kzVarAgent
	kzVarCallInteraction
	kzVarInteraction
)

// channelVarKeys are the members read from Custom-Channel-Vars.
var channelVarKeys = func() jsonscan.Keys {
	keys := format.BothSpellings("Account-ID", "Queue-ID", "Agent-ID", "Call-Interaction-ID", "Interaction-ID")
	for name := range keys {
		keys[name] += kzVarAccount
	}
	return keys
}()
