package normalizer

import "trunkline/event"

// freeswitchEvent is every other FreeSWITCH event. Channel events are the
// switch's, not the queue's: they are AGENT_CUSTOM_EVENT also where a channel
// variable names a queue (then metadata has it).
var freeswitchEvent = format{
	name: "freeswitch.event", keys: freeswitchKeys,
	account: freeswitchAccount, facts: freeswitchFacts,
}

// subclassType maps a CUSTOM event's subclass.
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
