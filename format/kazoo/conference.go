package kazoo

import (
	"trunkline/event"
	"trunkline/format"
)

// conference is the format of all events of Kazoo's conferences.
var conference = format.Format{
	Name: "kazoo.conference", Topic: event.TopicRaw, Keys: eventKeys, Open: openEnvelope, Account: account,
	Event: func(f *format.Fields) (format.Event, error) {
		e := eventFrom(f, event.AgentConference)
		addLeg(f, &e.Facts)
		switch format.Text(f[kzConferenceEvent]) {
		case "add-member":
			e.Facts.Name = event.NameConferenceJoined
		case "del-member":
			e.Facts.Name = event.NameConferenceLeft
		}
		return e, nil
	},
}
