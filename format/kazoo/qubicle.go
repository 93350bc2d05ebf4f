package kazoo

import (
	"strings"

	"trunkline/event"
	"trunkline/format"
)

// qubicleFormat is the format of Kazoo's Qubicle: recipients (agents), sessions (calls
// in a queue) and queues. A queue's own events (created, synced) concern no call
// and no agent.
var qubicleFormat = format.Format{
	Name: "kazoo.qubicle", Topic: event.TopicRaw, FromPlatform: true, Keys: callEventKeys, OpenEnvelope: openEnvelope,
	ReadAccount: account,
	DecodeEvent: func(f *format.Fields) (format.Event, error) {
		e := newEvent(f, event.Custom)
		switch strings.ReplaceAll(format.Text(f[kzCategory]), "_", "-") {
		case "qubicle-recipient":
			e.Type = event.AgentState
			setRecipientFacts(f, &e.Facts, eventName(f))
		case "qubicle-session":
			e.Type = event.QueueCall
			setSessionFacts(f, &e.Facts, eventName(f))
		}
		return e, nil
	},
}

// setRecipientFacts sets the facts of an agent. A login creates the agent and a logout
// deletes it. "ready" may follow a login or a break; only the previous state
// distinguishes them.
func setRecipientFacts(f *format.Fields, facts *event.Facts, name string) {
	facts.AgentName = format.Text(f[kzUsername])
	facts.Reason = format.Text(f[kzReason])
	word, _ := f[kzState].Text()
	if len(word) == 0 {
		word = []byte(name)
	}

	switch name {
	case "create":
		facts.Name, facts.State = event.NameAgentLogin, event.Available
		if f[kzState] != nil {
			facts.State = format.ParseAgentState(word)
		}
	case "delete":
		facts.Name, facts.State = event.NameAgentLogout, event.Offline
	default:
		facts.Name, facts.State = event.NameAgentState, format.ParseAgentState(word)
	}
}

// setSessionFacts sets the facts of a call in a queue, whose id is the session's.
func setSessionFacts(f *format.Fields, facts *event.Facts, name string) {
	addQueueCallFacts(f, facts)
	id := format.Text(f[kzSession])
	if id != "" {
		facts.CallID = id
	}
	facts.Reason = format.Text(f[kzReason])
	if w, ok := format.ParseCallStep([]byte(name)); ok {
		facts.Name, facts.State = w.Name, w.State
	}
}
