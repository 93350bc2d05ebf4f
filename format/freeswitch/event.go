package freeswitch

import (
	"trunkline/event"
	"trunkline/format"
)

// eventFormat is the format of every other FreeSWITCH event. Channel events are
// AGENT_CUSTOM_EVENT, even if a channel variable names a queue (which is then in the
// facts): they are events of the switch, not of the queue.
var eventFormat = format.Format{
	Name: "freeswitch.event", Topic: event.TopicRaw, FromPlatform: true, Encodings: plainEncoding,
	Keys: format.CallEventKeys(eventKeys), ReadAccount: account, DecodeEvent: readEvent, ExtensionOf: extension,
}

// readGeneralEvent reads an event that is not mod_callcenter's. The agent's own leg of a call
// in a queue, which mod_callcenter calls, has the side agent.
func readGeneralEvent(f *format.Fields) format.Event {
	name := decodeText(f[fsName])
	if name == "CUSTOM" {
		return readCustom(f, decodeText(f[fsSubclass]))
	}

	e := format.Event{Type: event.Custom, Facts: channelFacts(f)}
	e.Facts.Name, e.Facts.State = channelName(name)
	if e.Facts.Name == event.NameCallEnded {
		e.Facts.Reason = decodeText(f[fsHangupCause])
		e.Facts.TalkMS = talkTime(f)
	}
	if f[fsVariableSide].Is("agent") {
		e.Type = format.TypeOfAgentLeg(&e.Facts)
	}

	return e
}

// channelName returns the name of a channel's event and the state of the leg after it.
// The end of a leg has three events; only the one with the complete record of the leg
// is used.
func channelName(name string) (event.Name, event.State) {
	switch name {
	case "CHANNEL_CREATE":
		return event.NameCallCreated, ""
	case "CHANNEL_PROGRESS", "CHANNEL_PROGRESS_MEDIA":
		return event.NameCallRinging, event.Ringing
	case "CHANNEL_ANSWER":
		return event.NameCallAnswered, event.Talking
	case "CHANNEL_BRIDGE":
		return event.NameCallBridged, event.Talking
	case "CHANNEL_HOLD":
		return event.NameCallHeld, event.Held
	case "CHANNEL_UNHOLD":
		return event.NameCallResumed, event.Talking
	case "CHANNEL_HANGUP_COMPLETE":
		return event.NameCallEnded, event.Ended
	case "DTMF":
		return event.NameCallDTMF, ""
	}

	return event.NameOther, "" // CHANNEL_HANGUP, CHANNEL_DESTROY, CHANNEL_UNBRIDGE, …
}

// talkTime returns the time from the answer to the end of a leg, unknown if it was not
// answered.
func talkTime(f *format.Fields) event.Millis {
	if ms, ok := format.Integer(f[fsBillMillis]); ok && ms > 0 {
		return event.MillisOf(ms)
	}
	talk := format.MillisOfSeconds(f[fsBillSeconds])
	if talk.Value > 0 {
		return talk
	}
	return event.Millis{}
}

// readCustom reads a CUSTOM event by its subclass.
func readCustom(f *format.Fields, subclass string) format.Event {
	switch subclass {
	case "conference::maintenance":
		e := format.Event{Type: event.AgentConference, Facts: channelFacts(f)}
		switch decodeText(f[fsConferenceAction]) {
		case "add-member":
			e.Facts.Name = event.NameConferenceJoined
		case "del-member":
			e.Facts.Name = event.NameConferenceLeft
		}

		return e
	case "sofia::transferor":
		return format.Event{Type: event.AgentTransfer, Facts: transferFacts(f)}
	case "sofia::transferee": // the same transfer, reported by the other leg
		return format.Event{Type: event.AgentTransfer, Facts: channelFacts(f)}
	case "valet_parking::info":
		return parkingEvent(f)
	case "sofia::register":
		return registrationEvent(f, event.NameDeviceRegistered, event.Registered)
	case "sofia::unregister", "sofia::expire":
		e := registrationEvent(f, event.NameDeviceUnregistered, event.Unregistered)
		if subclass == "sofia::expire" {
			e.Facts.Reason = "expire"
		}
		return e
	}

	return format.Event{Type: event.Custom, Facts: channelFacts(f)}
}

// parkingEvent reads an event of mod_valet_parking. It is one of the parked channel, except
// that of the channel that takes the call.
func parkingEvent(f *format.Fields) format.Event {
	e := format.Event{Type: event.Custom, Facts: channelFacts(f)}
	switch decodeText(f[fsConferenceAction]) {
	case "hold":
		e.Facts.Name, e.Facts.State, e.Facts.Reason = event.NameCallHeld, event.Held, event.ReasonParked
	case "exit":
		e.Facts.Name, e.Facts.State = event.NameCallResumed, event.Talking
	}
	return e
}

// transferFacts returns the facts of a transfer. The event is of the leg that transferred;
// the call is the leg connected to it.
func transferFacts(f *format.Fields) event.Facts {
	facts := channelFacts(f)
	facts.Name = event.NameCallTransferred
	leg := firstText(f, fsTransferred, fsOtherLeg)
	if leg != "" {
		facts.CallID = leg
	}
	return facts
}

func registrationEvent(f *format.Fields, name event.Name, state event.State) format.Event {
	return format.Event{Type: format.TypeOf(name),
		Facts: event.Facts{Name: name, State: state, AgentID: addressOfRecord(f)}}
}
