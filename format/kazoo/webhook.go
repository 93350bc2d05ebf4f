package kazoo

import (
	"strings"

	"trunkline/event"
	"trunkline/format"
)

// webhookFormat is the format of Kazoo's webhooks: hook_event names a channel's or a
// conference's event; ACDc's queue hook has a call_state and a queue instead.
var webhookFormat = format.Format{
	Name: "kazoo.webhook", Topic: event.TopicRaw, FromPlatform: true, Keys: callEventKeys, OpenEnvelope: openEnvelope,
	ReadAccount: account,
	DecodeEvent: func(f *format.Fields) (format.Event, error) {
		hook := format.Text(f[kzHook])
		switch {
		case strings.HasPrefix(hook, "conference"):
			e := newEvent(f, event.AgentConference)
			addLegFacts(f, &e.Facts)
			return e, nil
		case f[kzCallState] != nil && f[kzQueue] != nil:
			return queueHookEvent(f), nil
		}
		return channelEvent(f, hook), nil
	},
}

// queueHookEvent parses ACDc's hook: an agent has picked up or hung up.
func queueHookEvent(f *format.Fields) format.Event {
	e := newEvent(f, event.QueueCall)
	facts := &e.Facts
	facts.CallID, facts.Caller = format.Text(f[kzMemberCall]), format.Text(f[kzCaller])
	facts.InteractionID = facts.CallID
	if w, ok := format.ParseCallStep([]byte(format.Text(f[kzCallState]))); ok {
		facts.Name, facts.State = w.Name, w.State
	}
	return e
}
