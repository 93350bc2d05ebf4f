package kazoo

import (
	"strings"

	"trunkline/event"
	"trunkline/format"
)

// webhook is the format of Kazoo's webhooks: hook_event names a channel's or a
// conference's event; ACDc's queue hook has a call_state and a queue instead.
var webhook = format.Format{
	Name: "kazoo.webhook", Topic: event.TopicRaw, Keys: eventKeys, Open: openEnvelope, Account: account,
	Event: func(f *format.Fields) (format.Event, error) {
		hook := format.Text(f[kzHook])
		eventType := event.Custom
		switch {
		case strings.HasPrefix(hook, "conference"):
			eventType = event.AgentConference
		case f[kzCallState] != nil && f[kzQueue] != nil:
			eventType = event.QueueCall
		}
		return readEvent(f, eventType), nil
	},
}
