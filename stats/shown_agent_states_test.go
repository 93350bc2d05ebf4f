package stats

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"trunkline/event/state"
)

// storyStart is when the stories of this file begin, Unix seconds.
const storyStart = 1_795_632_300

// line is a record of a story at a second of it.
func line(second float64, fields map[string]string, more ...string) json.RawMessage {
	all := maps.Clone(fields)
	for i := 0; i+1 < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}

	if all["Event-Name"] != "" {
		all["Event-Date-Timestamp"] = fmt.Sprintf("%.0f", (storyStart+second)*1e6)
	} else {
		all["Timestamp"] = fmt.Sprintf("%.6f", storyStart+second)
	}

	text, _ := json.Marshal(all) // strings always marshal
	return text
}

// member is an event about a member of a queue of Asterisk.
func member(second float64, name, queue, agent, status string, more ...string) json.RawMessage {
	return line(second,
		map[string]string{"Event": name, "Privilege": "agent,all", "Queue": queue, "MemberName": "Ann",
			"Interface":      agent,
			"StateInterface": agent, "Status": status, "InCall": "0", "Paused": "0", "LastCall": "0", "LastPause": "0",
			"Wrapuptime": "0"}, more...)
}

// caller is an event about a caller of Asterisk.
func caller(second float64, name, call string, more ...string) json.RawMessage {
	return line(second,
		map[string]string{"Event": name, "Privilege": "agent,all", "Uniqueid": call, "Linkedid": call,
			"ChannelState": "6"}, more...)
}

// status is an event about an agent of mod_callcenter.
func status(second float64, word, value string) json.RawMessage {
	action := map[string]string{"Status": "agent-status-change", "State": "agent-state-change"}[word]
	return line(second,
		map[string]string{"Event-Name": "CUSTOM", "Event-Subclass": "callcenter::info", "Core-UUID": "u",
			"CC-Action": action,
			"CC-Agent":  "1001", "CC-Agent-" + word: value})
}

// visit is an event about a caller of mod_callcenter.
func visit(second float64, action string, more ...string) json.RawMessage {
	return line(second,
		map[string]string{"Event-Name": "CUSTOM", "Event-Subclass": "callcenter::info", "Core-UUID": "u",
			"CC-Action": action,
			"CC-Queue":  "s", "CC-Member-UUID": "v", "CC-Member-Session-UUID": "l"}, more...)
}

// wrapUpEnd is what a live feed says when the wrap-up of a member is over.
func wrapUpEnd(second int) json.RawMessage {
	return fmt.Appendf(nil,
		`{"resync":"asterisk","timestamp":%d,"facts":{"name":"agent.state","agent_id":"PJSIP/1","queue_id":"q","agent":{"wrap_up_until_ms":%d}}}`,
		storyStart+second, (storyStart+second)*1000)
}

func lastCall(second, wrapUp int) []string {
	return []string{"LastCall", fmt.Sprint(storyStart + second), "Wrapuptime", fmt.Sprint(wrapUp)}
}

func TestAgentsAreShownAsAllThatIsKnownSays(t *testing.T) {
	const added, paused, changed = "QueueMemberAdded", "QueueMemberPause", "QueueMemberStatus"

	const phone = "PJSIP/1"
	pause := func(second int, reason string) []string {
		return []string{"Paused", "1", "PausedReason", reason, "LastPause", fmt.Sprint(storyStart + second)}
	}
	for name, c := range map[string]struct {
		story  []json.RawMessage
		floors map[int64]string
		agent  string
		figure func(a AgentRow, q QueueRow) [3]int64 // seconds or counts
		want   [3]int64
	}{
		"a pause in one of two queues is no break, also after a call": {[]json.RawMessage{
			member(0, added, "q", phone, "1"), member(0, added, "r", phone, "1"),
			member(10, paused, "q", phone, "1", pause(10, "lunch")...),
			caller(20, "QueueCallerJoin", "c", "Queue", "r"),
			caller(21, "AgentCalled", "c", "Queue", "r", "Interface", phone),
			caller(25, "AgentConnect", "c", "Queue", "r", "Interface", phone),
			member(25, changed, "q", phone, "2", pause(10, "lunch")...),
			member(25, changed, "r", phone, "2", "InCall", "1"),
			caller(40, "AgentComplete", "c", "Queue", "r", "Interface", phone, "Reason", "caller"),
			member(40, changed, "q", phone, "1", pause(10, "lunch")...), member(40, changed, "r", phone, "1"),
			member(50, paused, "r", phone, "1", pause(50, "lunch")...),
			member(60, paused, "q", phone, "1"), member(60, paused, "r", phone, "1"),
		}, map[int64]string{10: "PJSIP/1 available 0", 21: "PJSIP/1 ringing 21, r waiting 1",
			25: "PJSIP/1 talking 25, r talking 1",
			40: "PJSIP/1 available 40", 50: "PJSIP/1 break 50 lunch", 60: "PJSIP/1 available 60"}, phone,
			func(a AgentRow, _ QueueRow) [3]int64 {
				return [3]int64{a.TalkingMS / 1000, a.BreakMS / 1000, a.Answered}
			}, [3]int64{15, 10, 1}},
		"a pause in both queues at once": {[]json.RawMessage{
			member(0, added, "q", phone, "1"), member(0, added, "r", phone, "1"),
			member(10, paused, "q", phone, "1", pause(10, "lunch")...),
			member(10, paused, "r", phone, "1", pause(10, "lunch")...),
			member(30, paused, "q", phone, "1"),
		}, map[int64]string{10: "PJSIP/1 break 10 lunch", 30: "PJSIP/1 available 30"}, phone,
			func(a AgentRow, _ QueueRow) [3]int64 { return [3]int64{a.BreakMS / 1000} }, [3]int64{20}},
		"wrap-up of a member of two queues": {[]json.RawMessage{
			member(0, added, "q", phone, "1"), member(0, added, "r", phone, "1"),
			caller(10, "QueueCallerJoin", "c", "Queue", "q"),
			caller(11, "AgentCalled", "c", "Queue", "q", "Interface", phone),
			caller(12, "AgentConnect", "c", "Queue", "q", "Interface", phone, "HoldTime", "2"),
			member(12, changed, "q", phone, "2", "InCall", "1"), member(12, changed, "r", phone, "2"),
			caller(20, "AgentComplete", "c", "Queue", "q", "Interface", phone, "Reason", "caller", "TalkTime", "8"),
			member(20, changed, "q", phone, "1", lastCall(20, 7)...), member(20, changed, "r", phone, "1"),
			wrapUpEnd(27),
		}, map[int64]string{20: "PJSIP/1 wrap_up 20", 27: "PJSIP/1 available 27"}, phone,
			func(a AgentRow, q QueueRow) [3]int64 {
				return [3]int64{a.WrapUpMS / 1000, q.WrapUpMS / 1000, a.TalkingMS / 1000}
			}, [3]int64{7, 7, 8}},
		"a pause within the wrap-up, and its end": {[]json.RawMessage{
			member(0, added, "q", phone, "1"), member(0, added, "r", phone, "1"),
			caller(10, "QueueCallerJoin", "c", "Queue", "q"),
			caller(12, "AgentConnect", "c", "Queue", "q", "Interface", phone, "HoldTime", "2"),
			member(12, changed, "q", phone, "2", "InCall", "1"), member(12, changed, "r", phone, "2"),
			caller(20, "AgentComplete", "c", "Queue", "q", "Interface", phone, "Reason", "caller", "TalkTime", "8"),
			member(20, changed, "q", phone, "1", lastCall(20, 10)...), member(20, changed, "r", phone, "1"),
			member(22, paused, "q", phone, "1", append(pause(22, "notes"), lastCall(20, 10)...)...),
			member(22, paused, "r", phone, "1", pause(22, "notes")...),
			member(25, paused, "q", phone, "1", lastCall(20, 10)...), member(25, paused, "r", phone, "1"),
			wrapUpEnd(30),
		}, map[int64]string{20: "PJSIP/1 wrap_up 20", 22: "PJSIP/1 break 22 notes", 25: "PJSIP/1 wrap_up 25",
			30: "PJSIP/1 available 30"}, phone,
			func(a AgentRow, q QueueRow) [3]int64 {
				return [3]int64{a.WrapUpMS / 1000, q.WrapUpMS / 1000, a.BreakMS / 1000}
			}, [3]int64{7, 7, 3}},
		"a call that another agent's phone takes over": {[]json.RawMessage{
			member(0, added, "q", phone, "1"), member(5, changed, "q", phone, "2"),
			caller(10, "QueueCallerJoin", "c", "Queue", "q"),
			caller(11, "AgentConnect", "c", "Queue", "q", "Interface", phone, "HoldTime", "1"),
			member(11, changed, "q", phone, "2", "InCall", "1"),
			// its phone stays in use
			caller(30, "AgentComplete", "c", "Queue", "q", "Interface", phone, "Reason", "transfer"),
			member(90, changed, "q", phone, "1"),
		}, map[int64]string{5: "PJSIP/1 talking 5", 30: "PJSIP/1 talking 5", 90: "PJSIP/1 available 90"}, phone,
			func(a AgentRow, _ QueueRow) [3]int64 { return [3]int64{a.TalkingMS / 1000} }, [3]int64{85}},
		"an own call of a Local member, whose state is a phone's": {[]json.RawMessage{
			member(0, added, "q", "Local/1@a/n", "1", "StateInterface", "hint:1@a"),
			member(5, changed, "q", "Local/1@a/n", "2", "StateInterface", "hint:1@a"),
			member(15, changed, "q", "Local/1@a/n", "1", "StateInterface", "hint:1@a"),
		}, map[int64]string{5: "Local/1@a/n talking 5", 15: "Local/1@a/n available 15"}, "Local/1@a/n",
			func(a AgentRow, _ QueueRow) [3]int64 { return [3]int64{a.TalkingMS / 1000} }, [3]int64{10}},
		"wrap-up of app_agent_pool": {[]json.RawMessage{
			member(0, added, "q", "Local/1@pool/n", "1", "StateInterface", "Agent:1"),
			caller(5, "QueueCallerJoin", "c", "Queue", "q"),
			caller(6, "AgentCalled", "c", "Queue", "q", "Interface", "Local/1@pool/n"),
			member(6, changed, "q", "Local/1@pool/n", "2", "StateInterface", "Agent:1"),
			caller(8, "AgentConnect", "c", "Queue", "q", "Interface", "Local/1@pool/n"),
			member(8, changed, "q", "Local/1@pool/n", "2", "StateInterface", "Agent:1", "InCall", "1"),
			caller(20, "AgentComplete", "c", "Queue", "q", "Interface", "Local/1@pool/n", "Reason", "caller"),
			member(20, changed, "q", "Local/1@pool/n", "2", "StateInterface", "Agent:1"),
			member(25, changed, "q", "Local/1@pool/n", "1", "StateInterface", "Agent:1"),
		}, map[int64]string{6: "Local/1@pool/n ringing 6, q waiting 1", 8: "Local/1@pool/n talking 8, q talking 1",
			20: "Local/1@pool/n wrap_up 20",
			25: "Local/1@pool/n available 25"}, "Local/1@pool/n",
			func(a AgentRow, _ QueueRow) [3]int64 { return [3]int64{a.TalkingMS / 1000, a.WrapUpMS / 1000} },
			[3]int64{12, 5}},
		"an agent of app_agent_pool is the member": {[]json.RawMessage{
			member(0, added, "q", "Local/1@pool/n", "5", "StateInterface", "Agent:1"),
			line(5, map[string]string{"Event": "AgentLogin", "Privilege": "agent,all", "Agent": "1"}),
			member(6, changed, "q", "Local/1@pool/n", "1", "StateInterface", "Agent:1"),
			line(25, map[string]string{"Event": "AgentLogoff", "Privilege": "agent,all", "Agent": "1"}),
			member(25, changed, "q", "Local/1@pool/n", "5", "StateInterface", "Agent:1"),
		}, map[int64]string{0: "", 5: "Local/1@pool/n other 5 unreachable", 6: "Local/1@pool/n available 6", 25: ""},
			"Local/1@pool/n",
			func(a AgentRow, _ QueueRow) [3]int64 { return [3]int64{a.AvailableMS / 1000} }, [3]int64{19}},
		"mod_callcenter: a status outlasts what the agent does": {[]json.RawMessage{
			status(0, "Status", "On Break"), status(5, "State", "Receiving"), status(9, "State", "Waiting"),
			status(20, "Status", "Logged Out"), status(25, "State", "Receiving"), status(29, "State", "Waiting"),
		}, map[int64]string{0: "1001 break 0", 5: "1001 ringing 5", 9: "1001 break 9", 20: "", 29: ""}, "1001",
			func(a AgentRow, _ QueueRow) [3]int64 { return [3]int64{a.BreakMS / 1000} }, [3]int64{16}},
		"mod_callcenter: on demand, and idle": {[]json.RawMessage{
			status(0, "Status", "Available (On Demand)"), status(0, "State", "Waiting"),
			visit(5, "member-queue-start"), visit(6, "agent-offering", "CC-Agent", "1001"),
			status(6, "State", "Receiving"),
			visit(8, "bridge-agent-start", "CC-Agent", "1001"), status(8, "State", "In a queue call"),
			visit(18, "member-queue-end", "CC-Agent", "1001", "CC-Cause", "Terminated"), status(18, "State", "Idle"),
			status(30, "State", "Waiting"),
		}, map[int64]string{0: "1001 available 0", 8: "1001 talking 8, s talking 1", 18: "1001 other 18 not_ready",
			30: "1001 available 30"}, "1001",
			func(a AgentRow, _ QueueRow) [3]int64 { return [3]int64{a.TalkingMS / 1000, a.Offered, a.Answered} },
			[3]int64{10, 1, 1}},
		"mod_callcenter: an offer that is cancelled, and another one": {[]json.RawMessage{
			status(0, "Status", "Available"), visit(5, "member-queue-start"),
			visit(6, "agent-offering", "CC-Agent", "1001"), status(6, "State", "Receiving"),
			visit(9, "bridge-agent-fail", "CC-Agent", "1001", "CC-Hangup-Cause", "ORIGINATOR_CANCEL"),
			status(9, "State", "Waiting"),
			visit(12, "agent-offering", "CC-Agent", "1001"), status(12, "State", "Receiving"),
		}, map[int64]string{6: "1001 ringing 6, s waiting 1", 9: "1001 available 9, s waiting 1",
			12: "1001 ringing 12, s waiting 1"}, "1001",
			func(a AgentRow, _ QueueRow) [3]int64 { return [3]int64{a.Offered, a.NoAnswer} }, [3]int64{2, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			for n, story := range orders(readRecords(t, c.story)) {
				floors, figures := foldStory(t, story, state.NewPartition())
				for at, want := range c.floors {
					if got := floors[at]; got != want {
						t.Errorf("order %d, after %d s: %s, want %s", n, at, got, want)
					}
				}

				if got := c.figure(figures.sums(c.agent, "q")); got != c.want {
					t.Errorf("order %d: %v, want %v", n, got, c.want)
				}
				if t.Failed() {
					return
				}
			}
		})
	}
}
