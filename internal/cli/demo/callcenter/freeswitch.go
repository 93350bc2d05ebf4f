package callcenter

import (
	"strconv"
	"time"
)

// freeswitch produces the callcenter::info events of mod_callcenter: all values are strings,
// times are in seconds.
type freeswitch struct{}

const switchDomain = "pbx.example.com"

func (f freeswitch) call(c *Center, k *call, a *agent, m moment) {
	keys := map[string]string{
		"CC-Queue":               f.queue(k.queue),
		"CC-Member-UUID":         k.customer,
		"CC-Member-Session-UUID": k.id,
		"CC-Member-CID-Name":     k.name,
		"CC-Member-CID-Number":   k.number,
	}
	if a != nil {
		keys["CC-Agent"], keys["CC-Agent-Type"], keys["CC-Agent-System"] = f.agent(a), "callback", "single_box"
	}
	switch m {
	case entered:
		keys["CC-Action"] = "member-queue-start"
	case offered:
		keys["CC-Action"] = "agent-offering"
	case missed:
		keys["CC-Action"], keys["CC-Hangup-Cause"] = "bridge-agent-fail", "NO_ANSWER"
		keys["CC-Agent-Called-Time"], keys["CC-Agent-Aborted-Time"] = seconds(k.called), seconds(c.now)
	case answered, transferred:
		keys["CC-Action"], keys["CC-Agent-UUID"] = "bridge-agent-start", k.bridge
		keys["CC-Agent-Called-Time"], keys["CC-Agent-Answered-Time"] = seconds(k.called), seconds(k.answered)
		keys["CC-Member-Joined-Time"] = seconds(k.joined)
	case abandoned:
		f.over(c, k, keys, "Cancel", "BREAK_OUT")
	case ended:
		f.over(c, k, keys, "Terminated", "NONE")
		keys["CC-Hangup-Cause"] = "NORMAL_CLEARING"
	}
	f.emit(c, keys)
}

func (freeswitch) over(c *Center, k *call, keys map[string]string, cause, reason string) {
	keys["CC-Action"], keys["CC-Cause"], keys["CC-Cancel-Reason"] = "member-queue-end", cause, reason
	keys["CC-Member-Joined-Time"], keys["CC-Member-Leaving-Time"] = seconds(k.joined), seconds(c.now)
}

var agentStates = map[state]string{
	idle: "Waiting", ringing: "Receiving", onCall: "In a queue call", wrapUp: "Idle",
}

func (f freeswitch) state(c *Center, a *agent) {
	f.emit(c, map[string]string{
		"CC-Action": "agent-state-change", "CC-Agent": f.agent(a), "CC-Agent-State": agentStates[a.state],
	})
}

var agentStatuses = map[attendance]string{
	arrives: "Available", leaves: "Logged Out", pauses: "On Break", resumes: "Available",
}

func (f freeswitch) status(c *Center, a *agent, what attendance) {
	f.emit(c, map[string]string{
		"CC-Action": "agent-status-change", "CC-Agent": f.agent(a), "CC-Agent-Status": agentStatuses[what],
	})
}

// transferred produces no event: mod_callcenter has none for a transfer, except for the new
// bridge.
func (freeswitch) transferred(*Center, *agent, *agent, *call) {}

func (freeswitch) queue(q *queue) string { return q.id + "@" + switchDomain }
func (freeswitch) agent(a *agent) string { return a.ext + "@" + switchDomain }

func (freeswitch) emit(c *Center, keys map[string]string) {
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
		keys[key] = value
	}
	c.emit("freeswitch.callcenter", keys)
}

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }
