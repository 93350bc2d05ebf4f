package kazoo

import (
	"trunkline/event"
	"trunkline/format"
)

// conferenceFormat is the format of all events of Kazoo's conferences.
var conferenceFormat = format.Format{
	Name: "kazoo.conference", Topic: event.TopicRaw, FromPlatform: true, Keys: callEventKeys,
	OpenEnvelope: openEnvelope, ReadAccount: account,
	DecodeEvent: func(f *format.Fields) (format.Event, error) {
		e := newEvent(f, event.AgentConference)
		addLegFacts(f, &e.Facts)
		switch format.Text(f[kzConferenceEvent]) {
		case "add-member":
			e.Facts.Name = event.NameConferenceJoined
		case "del-member":
			e.Facts.Name = event.NameConferenceLeft
		}
		return e, nil
	},
}
