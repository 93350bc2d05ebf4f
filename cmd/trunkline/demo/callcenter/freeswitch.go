package callcenter

import (
	"strconv"
	"time"
)

// freeswitch produces the callcenter::info events of mod_callcenter: all values are strings,
// times are in seconds.
type freeswitch struct{}

const switchDomain = "pbx.example.com"

func (f freeswitch) emitCall(c *Center, k *call, a *agent, step callStep) {
	headers := map[string]string{
		"CC-Queue":               f.queueName(k.queue),
		"CC-Member-UUID":         k.customerLegID,
		"CC-Member-Session-UUID": k.id,
		"CC-Member-CID-Name":     k.callerName,
		"CC-Member-CID-Number":   k.callerNumber,
	}

	if a != nil {
		headers["CC-Agent"], headers["CC-Agent-Type"], headers["CC-Agent-System"] = f.agentName(
			a), "callback", "single_box"
	}

	switch step {
	case entered:
		headers["CC-Action"] = "member-queue-start"
	case offered:
		headers["CC-Action"] = "agent-offering"
	case missed:
		headers["CC-Action"], headers["CC-Hangup-Cause"] = "bridge-agent-fail", "NO_ANSWER"
		headers["CC-Agent-Called-Time"], headers["CC-Agent-Aborted-Time"] = unixSeconds(k.offeredAt), unixSeconds(c.now)
	case answered, transferred:
		headers["CC-Action"], headers["CC-Agent-UUID"] = "bridge-agent-start", k.bridgeID
		headers["CC-Agent-Called-Time"], headers["CC-Agent-Answered-Time"] = unixSeconds(k.offeredAt), unixSeconds(
			k.answeredAt)
		headers["CC-Member-Joined-Time"] = unixSeconds(k.joinedAt)
	case abandoned:
		f.setQueueEnd(c, k, headers, "Cancel", "BREAK_OUT")
	case ended:
		f.setQueueEnd(c, k, headers, "Terminated", "NONE")
		headers["CC-Hangup-Cause"] = "NORMAL_CLEARING"
	}

	f.emit(c, headers)
}

func (freeswitch) setQueueEnd(c *Center, k *call, headers map[string]string, cause, reason string) {
	headers["CC-Action"], headers["CC-Cause"], headers["CC-Cancel-Reason"] = "member-queue-end", cause, reason
	headers["CC-Member-Joined-Time"], headers["CC-Member-Leaving-Time"] = unixSeconds(k.joinedAt), unixSeconds(c.now)
}

var agentStates = map[state]string{
	idle: "Waiting", ringing: "Receiving", onCall: "In a queue call", wrapUp: "Idle",
}

func (f freeswitch) emitState(c *Center, a *agent) {
	f.emit(c, map[string]string{
		"CC-Action": "agent-state-change", "CC-Agent": f.agentName(a), "CC-Agent-State": agentStates[a.state],
	})
}

var agentStatuses = map[statusChange]string{
	arrives: "Available", leaves: "Logged Out", pauses: "On Break", resumes: "Available",
}

func (f freeswitch) emitStatus(c *Center, a *agent, change statusChange) {
	f.emit(c, map[string]string{
		"CC-Action": "agent-status-change", "CC-Agent": f.agentName(a), "CC-Agent-Status": agentStatuses[change],
	})
}

// emitTransfer produces no event: mod_callcenter has none for a transfer, except for the new
// bridge.
func (freeswitch) emitTransfer(*Center, *agent, *agent, *call) {}

func (freeswitch) queueName(q *queue) string { return q.id + "@" + switchDomain }
func (freeswitch) agentName(a *agent) string { return a.ext + "@" + switchDomain }

func (freeswitch) emit(c *Center, headers map[string]string) {
	c.sequence++
	for key, value := range map[string]string{
		"Event-Name":           "CUSTOM",
		"Event-Subclass":       "callcenter::info",
		"Core-UUID":            "7c0ce1e5-0000-4000-8000-64656d6f0001", // constant: one FreeSWITCH process
		"FreeSWITCH-Hostname":  "pbx",
		"Event-Date-GMT":       c.now.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT"),
		"Event-Date-Timestamp": strconv.FormatInt(c.now.UnixMicro(), 10),
		"Event-Sequence":       strconv.Itoa(c.sequence),
	} {
		headers[key] = value
	}

	c.emit("freeswitch.callcenter", headers)
}

func unixSeconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
