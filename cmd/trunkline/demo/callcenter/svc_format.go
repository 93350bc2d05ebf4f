package callcenter

import "trunkline/event"

// svcFormat produces Trunkline's own format for calls and states, and generic events for the rest.
type svcFormat struct{}

// object is a JSON object; its keys are marshalled sorted.
type object = map[string]any

var channelEvents = map[callStep]string{
	entered: "CHANNEL_CREATE", offered: "CHANNEL_PROGRESS", answered: "CHANNEL_ANSWER", missed: "CHANNEL_UNBRIDGE",
	transferred: "CHANNEL_BRIDGE", ended: "CHANNEL_DESTROY", abandoned: "CHANNEL_DESTROY",
}

func (svcFormat) emitCall(c *Center, k *call, _ *agent, step callStep) {
	c.emit("svc.cc", object{
		"Account-ID": c.account,
		"Queue-ID":   k.queue.id,
		"Type":       event.QueueCall,
		"CDR": object{
			"channel": object{
				"Conference-Channel-Vars": object{
					"Energy-Level": 100 + c.random.IntN(400), "Member-Ghost": false,
					"Member-Type": "member", "Member-ID": k.memberNumber,
				},
				"Custom-Channel-Vars": object{"Account-ID": c.account, "Bridge-ID": k.bridgeID},
			},
			"Call-ID":       k.id,
			"Conference-ID": k.conferenceID,
			"Event":         channelEvents[step],
		},
		"customer_info": object{
			"customer_callerid_name": k.callerName, "customer_callerid_number": k.callerNumber,
			"customer_uuid": k.customerLegID,
		},
		"history": k.history,
	})
}

func (svcFormat) emitState(c *Center, a *agent) {
	data := object{
		"Account-ID": c.account, "Queue-ID": a.queue.id, "Type": event.AgentState,
		"Agent-ID": a.ext, "Agent-State": a.state,
		"agent": object{"ext": a.ext, "email": a.email(), "first_name": a.first, "last_name": a.last},
	}
	if a.call != nil {
		data["Call-ID"] = a.call.id
	}
	c.emit("svc.cc", data)
}

var statusChangeTypes = map[statusChange]event.Type{
	arrives: event.AgentLogin, leaves: event.AgentLogout, pauses: event.AgentBreakStart, resumes: event.AgentBreakEnd,
}

func (svcFormat) emitStatus(c *Center, a *agent, change statusChange) {
	data := object{"agent_id": a.ext, "queue_id": a.queue.id, "email": a.email()}
	switch change {
	case pauses:
		data["reason"] = []string{"coffee", "lunch", "training"}[c.random.IntN(3)]
	case leaves:
		data["handled_calls"] = a.handled
	}
	c.emitGeneric(statusChangeTypes[change], data)
}

func (svcFormat) emitTransfer(c *Center, from, to *agent, k *call) {
	c.emitGeneric(event.AgentTransfer, object{
		"agent_id": from.ext, "to_agent_id": to.ext, "queue_id": k.queue.id, "call_id": k.id,
	})
}
