package normalizer

import (
	"strings"

	"trunkline/event"
)

// kazooWebhook is what Kazoo's webhooks post: hook_event names a channel's or
// a conference's event; ACDc's queue hook has a call_state and a queue instead.
var kazooWebhook = format{
	name: "kazoo.webhook", keys: kazooKeys, open: openKazoo, account: kazooAccount,
	facts: func(f *fields) (facts, error) {
		hook := str(f[kzHook])
		kind := event.Custom
		switch {
		case strings.HasPrefix(hook, "conference"):
			kind = event.AgentConference
		case f[kzCallState] != nil && f[kzQueue] != nil:
			kind = event.QueueCall
		}
		return kazooFacts(f, kind), nil
	},
}
