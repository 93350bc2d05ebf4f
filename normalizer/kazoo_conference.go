package normalizer

import "trunkline/event"

// kazooConference is every event of Kazoo's conferences.
var kazooConference = format{
	name: "kazoo.conference", keys: kazooKeys, open: openKazoo, account: kazooAccount,
	facts: func(f *fields) (facts, error) {
		return kazooFacts(f, event.AgentConference), nil
	},
}
