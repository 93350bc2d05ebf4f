package kazoo

import (
	"strings"

	"trunkline/event"
	"trunkline/format"
)

// qubicle is the format of Kazoo's Qubicle: recipients (agents), sessions (calls
// in a queue) and queues.
var qubicle = format.Format{
	Name: "kazoo.qubicle", Topic: event.TopicRaw, Keys: eventKeys, Open: openEnvelope, Account: account,
	Event: func(f *format.Fields) (format.Event, error) {
		return readEvent(f, qubicleType(format.Text(f[kzCategory]), eventName(f))), nil
	},
}

// qubicleType returns the type of a recipient's or session's event. A recipient is
// created by a login and deleted by a logout; "ready" may follow a login or a
// break, so it is an agent state event. A queue's own events (created, synced)
// concern no call and no agent.
func qubicleType(category, name string) event.Type {
	switch strings.ReplaceAll(category, "_", "-") {
	case "qubicle-recipient":
		switch name {
		case "create":
			return event.AgentLogin
		case "delete":
			return event.AgentLogout
		}
		return event.AgentState
	case "qubicle-session":
		return event.QueueCall
	}
	return event.Custom
}
