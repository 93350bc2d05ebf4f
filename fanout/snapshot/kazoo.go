package snapshot

import (
	"strings"

	"trunkline/internal/jsonscan"
)

// Kazoo's ACDc, Qubicle and queue webhook, reference/telephony.md sections 1.4
// and 1.5.
var kazooKeys = bothSpellings(
	"Event-Category", "Event-Name", "Agent-ID", "Recipient-ID", "State", "Change",
	"Call-ID", "Session-ID", "Member-Call-ID", "Call-State", "Call",
	"Action", "Data", "Args",
)

const (
	kzCategory = iota
	kzName
	kzAgent
	kzRecipient
	kzState
	kzChange
	kzCall
	kzSession
	kzMemberCall
	kzCallState
	kzCallObject
	kzAction
	kzData
	kzArgs
	kzFields
)

type kazooFields [kzFields]jsonscan.Value

var kazooCallKeys = bothSpellings("Call-ID")

func readKazoo(data []byte) update {
	var f kazooFields
	if kazooKeys.Scan(data, f[:]) != nil {
		return update{}
	}
	if f[kzCategory] == nil { // a Blackhole envelope, or a webhook
		inside := f[kzArgs]
		if f[kzAction].Is("event") {
			inside = f[kzData]
		}
		within(inside, kazooKeys, f[:])
	}
	name := text(f[kzName])
	switch category := strings.ReplaceAll(text(f[kzCategory]), "_", "-"); category {
	case "acdc-status-stat":
		return update{agent: f.status(name)}
	case "agent":
		return update{agent: f.command(name)}
	case "acdc-call-stat", "member":
		return f.visit(text(f[kzCall]), name)
	case "queue":
		if name == "agent_change" {
			return update{agent: agentUpdate{id: text(f[kzAgent]), status: text(f[kzChange]), keepsLogout: true}}
		}
		return f.visit(text(f[kzCall]), name)
	case "qubicle-recipient":
		return update{agent: f.recipient(name)}
	case "qubicle-session":
		return f.visit(first(f[kzSession], f[kzCall]), name)
	case "":
		return f.visit(text(f[kzMemberCall]), text(f[kzCallState]))
	}
	return update{}
}

// status is a word of ACDc's one machine for agents: ready, connecting,
// connected, wrapup, paused and so on. It is the state; the status is what the
// queues take the agent for (agent_change).
func (f *kazooFields) status(word string) agentUpdate {
	return agentUpdate{id: text(f[kzAgent]), state: word, loggedOut: word == "logged_out"}
}

// command is what an agent was told to do; the status it leads to has the same
// word.
func (f *kazooFields) command(name string) agentUpdate {
	switch name {
	case "login":
		return f.status("logged_in")
	case "logout":
		return f.status("logged_out")
	case "pause":
		return f.status("paused")
	case "resume", "end_wrapup":
		return f.status("ready")
	}
	return agentUpdate{}
}

// recipient is Qubicle's agent: created by logging in, deleted by logging out.
func (f *kazooFields) recipient(name string) agentUpdate {
	a := agentUpdate{id: text(f[kzRecipient]), state: text(f[kzState]), loggedOut: name == "delete"}
	if a.state == "" {
		a.state = name
	}
	return a
}

func (f *kazooFields) visit(id, name string) (s update) {
	if id == "" {
		var inner [1]jsonscan.Value
		within(f[kzCallObject], kazooCallKeys, inner[:])
		id = text(inner[0])
	}
	s.call = callUpdate{id: id}
	step, _ := transitionOf(name)
	if s.call.apply(step); step.state != Waiting {
		s.call.agent = first(f[kzAgent], f[kzRecipient])
	}
	return s
}

// first is the first of the values that is a string with something in it.
func first(values ...jsonscan.Value) string {
	for _, v := range values {
		if s := text(v); s != "" {
			return s
		}
	}
	return ""
}
