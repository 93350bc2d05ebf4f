package kazoo

import (
	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/jsonscan"
)

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

// account returns the account that a message names.
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
