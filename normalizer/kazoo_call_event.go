package normalizer

import "trunkline/event"

// kazooCallEvent is Kazoo's call_event: what a channel did. Channel events are
// the switch's, not the queue's (see freeswitchEvent).
var kazooCallEvent = format{
	name: "kazoo.call_event", keys: kazooKeys, open: openKazoo, account: kazooAccount,
	facts: func(f *fields) (facts, error) {
		kind := event.Custom
		switch kazooName(f) {
		case "CHANNEL_TRANSFEROR", "CHANNEL_TRANSFEREE":
			kind = event.AgentTransfer
		}
		return kazooFacts(f, kind), nil
	},
}
