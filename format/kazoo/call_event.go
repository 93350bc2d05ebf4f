package kazoo

import (
	"trunkline/event"
	"trunkline/format"
)

// callEvent is the format of Kazoo's call_event, the events of channels. They are
// the switch's, not the queue's, so most are AGENT_CUSTOM_EVENT.
var callEvent = format.Format{
	Name: "kazoo.call_event", Topic: event.TopicRaw, Keys: eventKeys, Open: openEnvelope, Account: account,
	Event: func(f *format.Fields) (format.Event, error) {
		eventType := event.Custom
		switch eventName(f) {
		case "CHANNEL_TRANSFEROR", "CHANNEL_TRANSFEREE":
			eventType = event.AgentTransfer
		}
		return readEvent(f, eventType), nil
	},
}
