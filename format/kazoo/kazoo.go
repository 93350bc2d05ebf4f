package kazoo

import (
	"trunkline/event"
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

// openEnvelope reads a Blackhole envelope, {action: "event", name, data: {…}} or the
// older {name, args: {…}}, and the channel variables. The envelope's name applies if
// the event inside has none.
func openEnvelope(keys jsonscan.Keys, f *format.Fields) error {
	content := f[kzArgs]
	if f[kzAction].Is("event") {
		content = f[kzData]
	}

	// What has a category itself is no envelope.
	if content.Kind() == jsonscan.Object && f[kzCategory] == nil {
		if err := keys.Scan(content, f[:]); err != nil {
			return err
		}
	}

	channelVarKeys.ScanObject(f[kzChannelVars], f[:])
	return nil
}

func account(f *format.Fields) (string, error) {
	account, err := format.AccountText(f[kzAccount], "Account-ID")
	if account != "" || err != nil {
		return account, err
	}
	return format.AccountText(f[kzVarAccount], "Custom-Channel-Vars.Account-ID")
}

// newEvent returns the fields common to all Kazoo events.
func newEvent(f *format.Fields, eventType event.Type) format.Event {
	e := format.Event{Type: eventType, Facts: event.Facts{
		AgentID:     format.FirstText(f[kzAgent], f[kzRecipient], f[kzVarAgent]),
		QueueID:     format.FirstText(f[kzQueue], f[kzJoinQueue], f[kzVarQueue]),
		TimestampMS: format.FirstTimestamp(f[kzTime], f[kzEventTime], f[kzUnixTime], f[kzNow]),
	}}
	e.Timestamp = e.Facts.TimestampMS / 1000
	e.Call.CustomerName = callerName(f)
	e.Call.SetConference(f[kzConference], f[kzConferenceVars])
	return e
}

// callerName returns the caller's name of an event, or of its Call.
func callerName(f *format.Fields) string {
	var call [1]jsonscan.Value
	if f[kzCallerName] == nil {
		callNameKeys.ScanObject(f[kzCallObject], call[:])
	}
	return format.FirstText(f[kzCallerName], call[0])
}

var callNameKeys = format.BothSpellings("Caller-ID-Name")

// eventName returns the event's own name, or else its envelope's.
func eventName(f *format.Fields) string { return format.FirstText(f[kzName], f[kzEnvelopeName]) }

// addLegFacts adds the facts of a leg: its id, its interaction and its parties. The
// interaction is found as in a call record (see cdr.go).
func addLegFacts(f *format.Fields, facts *event.Facts) {
	facts.CallID = format.Text(f[kzCall])
	facts.OriginationCallID = format.Text(f[kzOrigination])
	facts.Caller, facts.Callee = format.Text(f[kzCaller]), format.Text(f[kzCallee])

	if facts.CallID == "" {
		return
	}

	facts.InteractionID = format.FirstText(f[kzInteraction], f[kzCallInteraction],
		f[kzVarCallInteraction], f[kzVarInteraction], f[kzOrigination], f[kzOriginatingLeg])
	if facts.InteractionID == "" {
		facts.InteractionID = facts.CallID
		other := format.Text(f[kzOtherLeg])
		if other != "" && f[kzDirection].Is("outbound") {
			facts.InteractionID = other
		}
	}
}

// callKeys are the members read from Call, the caller in ACDc's messages between
// its queues and agents.
var callKeys = format.BothSpellings("Call-ID", "Caller-ID-Number", "Callee-ID-Number")

// addQueueCallFacts adds the facts of a call in a queue, which Kazoo identifies by the id
// of the caller's leg.
func addQueueCallFacts(f *format.Fields, facts *event.Facts) {
	addLegFacts(f, facts)
	if facts.CallID != "" {
		return
	}

	var call [3]jsonscan.Value
	callKeys.ScanObject(f[kzCallObject], call[:])
	facts.CallID = format.Text(call[0])
	if facts.CallID != "" {
		facts.InteractionID = facts.CallID
		facts.Caller, facts.Callee = format.Text(call[1]), format.Text(call[2])
	}
}
