package kazoo

import (
	"trunkline/event"
	"trunkline/format"
)

// conference is the format of all events of Kazoo's conferences.
var conference = format.Format{
	Name: "kazoo.conference", Topic: event.TopicRaw, Keys: eventKeys, Open: openEnvelope, Account: account,
	Event: func(f *format.Fields) (format.Event, error) {
		return readEvent(f, event.AgentConference), nil
	},
}
