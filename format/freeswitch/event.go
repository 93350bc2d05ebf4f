package freeswitch

import (
	"trunkline/event"
	"trunkline/format"
)

// events is the format of every other FreeSWITCH event. Channel events are
// AGENT_CUSTOM_EVENT, also where a channel variable names a queue (which is then
// in metadata): they are the switch's, not the queue's.
var events = format.Format{
	Name: "freeswitch.event", Topic: event.TopicRaw, Encodings: plainEncoding, Keys: eventKeys,
	Account: account, Event: readEvent,
}

// subclassType returns the type of a CUSTOM event by its subclass.
func subclassType(subclass string) event.Type {
	switch subclass {
	case "conference::maintenance":
		return event.AgentConference
	case "sofia::transferor", "sofia::transferee":
		return event.AgentTransfer
	case "sofia::register":
		return event.DeviceRegister
	case "sofia::unregister", "sofia::expire":
		return event.DeviceGone
	}
	return event.Custom
}
