package kazoo

import (
	"trunkline/event"
	"trunkline/format"
)

// callEvent is Kazoo's call_event: what a channel did. Channel events are
// the switch's, not the queue's (see freeswitchEvent).
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
