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
		switch {
		case strings.HasPrefix(hook, "conference"):
			e := eventFrom(f, event.AgentConference)
			addLeg(f, &e.Facts)
			return e, nil
		case f[kzCallState] != nil && f[kzQueue] != nil:
			return queueHook(f), nil
		}
		return channelEvent(f, hook), nil
	},
}

// queueHook parses ACDc's hook: an agent has picked up or hung up.
func queueHook(f *format.Fields) format.Event {
	e := eventFrom(f, event.QueueCall)
	facts := &e.Facts
	facts.CallID, facts.Caller = format.Text(f[kzMemberCall]), format.Text(f[kzCaller])
	facts.InteractionID = facts.CallID
	if w, ok := format.CallWordOf([]byte(format.Text(f[kzCallState]))); ok {
		facts.Name, facts.State = w.Name, w.State
	}
	return e
}
