package snapshot

import "trunkline/internal/jsonscan"

// mod_callcenter's callcenter::info, reference/telephony.md section 2.1. All
// values are strings.
var freeswitchKeys = jsonscan.KeysOf(
	"CC-Action", "CC-Agent", "CC-Agent-State", "CC-Agent-Status", "CC-Member-UUID",
)

const (
	fsAction = iota
	fsAgent
	fsState
	fsStatus
	fsMember
	fsFields
)

func readFreeSWITCH(data []byte) (s update) {
	var f [fsFields]jsonscan.Value
	if freeswitchKeys.Scan(data, f[:]) != nil {
		return update{}
	}
	agent := decoded(f[fsAgent])
	action := decoded(f[fsAction])
	switch action {
	case "agent-status-change":
		status := decoded(f[fsStatus])
		s.agent = agentUpdate{id: agent, status: status, loggedOut: isLoggedOut(status)}
	case "agent-state-change":
		// An agent that has logged out during a call gets states until it ends.
		s.agent = agentUpdate{id: agent, state: decoded(f[fsState]), keepsLogout: true}
	default:
		step, ok := transitionOf(action)
		if !ok {
			return update{}
		}
		s.call = callUpdate{id: decoded(f[fsMember])}
		if s.call.apply(step); step.state != Waiting {
			s.call.agent = agent
		}
	}
	return s
}
