package kazoo

import (
	"strings"

	"trunkline/event"
	"trunkline/format"
)

// callEventFormat is the format of Kazoo's call_event, the events of channels, and of
// its registrar's reg_success. The former are the switch's, not the queue's, so
// most are AGENT_CUSTOM_EVENT.
var callEventFormat = format.Format{
	Name: "kazoo.call_event", Topic: event.TopicRaw, FromPlatform: true, Keys: callEventKeys,
	OpenEnvelope: openEnvelope, ReadAccount: account,
	DecodeEvent: func(f *format.Fields) (format.Event, error) {
		if isRegistration(f) {
			return registrationEvent(f), nil
		}
		return channelEvent(f, eventName(f)), nil
	},
}

// channelEvent parses the event of a channel: one of the bus, CHANNEL_…, or of a
// webhook, channel_….
func channelEvent(f *format.Fields, name string) format.Event {
	e := newEvent(f, event.Custom)
	addLegFacts(f, &e.Facts)
	facts := &e.Facts

	switch strings.ToUpper(name) {
	case "CHANNEL_CREATE":
		facts.Name = event.NameCallCreated
	case "CHANNEL_PROGRESS", "CHANNEL_PROGRESS_MEDIA":
		facts.Name, facts.State = event.NameCallRinging, event.Ringing
	case "CHANNEL_ANSWER":
		facts.Name, facts.State = event.NameCallAnswered, event.Talking
	case "CHANNEL_BRIDGE":
		facts.Name, facts.State = event.NameCallBridged, event.Talking
	case "CHANNEL_HOLD":
		facts.Name, facts.State = event.NameCallHeld, event.Held
	case "CHANNEL_UNHOLD", "PARK_RETRIEVED":
		facts.Name, facts.State = event.NameCallResumed, event.Talking
	case "PARK_PARKED":
		facts.Name, facts.State, facts.Reason = event.NameCallHeld, event.Held, event.ReasonParked
	case "CHANNEL_DESTROY":
		facts.Name, facts.State = event.NameCallEnded, event.Ended
		facts.Reason = format.Text(f[kzCause])
		talk := format.MillisOfSeconds(f[kzBilling])
		if talk.Value > 0 {
			facts.TalkMS = talk
		}
	case "DTMF":
		facts.Name = event.NameCallDTMF
	case "CHANNEL_TRANSFEROR":
		// The event is one of the leg that transferred; the call is the leg it was
		// connected with.
		e.Type, facts.Name = event.AgentTransfer, event.NameCallTransferred
		leg := format.Text(f[kzOtherLeg])
		if leg != "" {
			facts.CallID = leg
		}

		to := format.Text(f[kzTransferTo])
		if to != "" {
			facts.Callee = to
		}
	case "CHANNEL_TRANSFEREE": // the same transfer, reported by the other leg
		e.Type = event.AgentTransfer
	}

	if e.Type == event.Custom && facts.QueueID != "" && !f[kzDirection].Is("inbound") { // the queue called the agent
		e.Type = format.TypeOfAgentLeg(facts)
	}

	return e
}

func isRegistration(f *format.Fields) bool {
	return f[kzCategory].Is("directory") && f[kzName].Is("reg_success")
}

// registrationEvent parses a registration. Kazoo repeats it with each renewal and sends
// no event that is read here when it expires.
func registrationEvent(f *format.Fields) format.Event {
	e := newEvent(f, event.DeviceRegister)
	e.Facts.Name, e.Facts.State = event.NameDeviceRegistered, event.Registered
	e.Facts.AgentID = format.Text(f[kzUsername])
	if e.Facts.AgentID != "" && f[kzRealm] != nil {
		e.Facts.AgentID += "@" + format.Text(f[kzRealm])
	}
	return e
}
