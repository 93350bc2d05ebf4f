package asterisk

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/ingest/feed"
	"trunkline/internal/fault"
)

// The actions of the manager interface for each command, Asterisk 23's words of its refusals, and an
// answer that does not come.
func TestCommandsOfActions(t *testing.T) {
	const call = "1795169706.42"
	member := feed.Command{AgentID: "Local/1001@agents/n", AgentName: "Anna", Queues: []string{"sales", "support"}}
	with := func(action feed.Action, change func(*feed.Command)) feed.Command {
		c := member
		c.Action = action
		if change != nil {
			change(&c)
		}
		return c
	}

	onCall := func(action feed.Action) feed.Command {
		return feed.Command{ID: "9b2f6a51-3c1d-4a53-8a7e-6b1e0c5d9f22", Action: action, CallID: call, Extension: "1010",
			Destination: "7001"}
	}

	toSales := func(c *feed.Command) { c.QueueID = "sales" }
	getvar := "Response: Success\r\nActionID: a2\r\nVariable: CHANNEL(context)\r\nValue: from-internal\r\n\r\n"

	for name, c := range map[string]struct {
		command feed.Command
		answers map[string]string
		kind    fault.Kind
		words   string
		sent    []string
	}{
		"join": {with(feed.ActionJoin, toSales), nil, "", "",
			[]string{"Action: QueueAdd|Queue: sales|Interface: Local/1001@agents/n|MemberName: Anna"}},
		"log in": {with(feed.ActionLogin, toSales), nil, "", "",
			[]string{"Action: QueueAdd|Queue: sales|Interface: Local/1001@agents/n|MemberName: Anna"}},
		"log in, no queue": {with(feed.ActionLogin, nil), nil, fault.KindConflict, "queue_id", nil},
		"a member joins": {with(feed.ActionJoin, toSales),
			map[string]string{"QueueAdd": "error: Unable to add interface: Already there"},
			fault.KindRefused, "Unable to add interface: Already there", nil},
		"no such queue": {with(feed.ActionJoin, toSales),
			map[string]string{"QueueAdd": "error: Unable to add interface to queue: No such queue"},
			fault.KindRefused, "No such queue", nil},
		"leave": {with(feed.ActionLeave, toSales), nil, "", "",
			[]string{"Action: QueueRemove|Queue: sales|Interface: Local/1001@agents/n"}},
		"a static one leaves": {with(feed.ActionLeave, toSales),
			map[string]string{"QueueRemove": "error: Member not dynamic"}, fault.KindRefused, "Member not dynamic",
			nil},
		"log out": {with(feed.ActionLogout, nil), nil, "", "", []string{
			"Action: QueueRemove|Queue: sales|Interface: Local/1001@agents/n",
			"Action: QueueRemove|Queue: support|Interface: Local/1001@agents/n"}},
		"log out of one of two": {with(feed.ActionLogout, nil),
			map[string]string{"QueueRemove sales": "error: Member not dynamic"}, "", "",
			[]string{"Action: QueueRemove|Queue: support|Interface: Local/1001@agents/n"}},
		"log out of none": {with(feed.ActionLogout, nil),
			map[string]string{"QueueRemove": "error: Unable to remove interface: Not there"},
			fault.KindRefused, "Not there", nil},
		"log out without a queue": {with(feed.ActionLogout, func(c *feed.Command) { c.Queues = nil }), nil,
			fault.KindConflict, "in none", nil},
		"break": {with(feed.ActionBreak, func(c *feed.Command) { c.Reason = "Mittag: 30 min" }), nil, "", "",
			[]string{"Action: QueuePause|Interface: Local/1001@agents/n|Paused: true|Reason: Mittag: 30 min"}},
		"ready": {with(feed.ActionReady, nil), nil, "", "",
			[]string{"Action: QueuePause|Interface: Local/1001@agents/n|Paused: false"}},
		"nobody": {with(feed.ActionReady, nil), map[string]string{"QueuePause": "error: Interface not found"},
			fault.KindRefused, "Interface not found", nil},
		"a reason of two lines": {with(feed.ActionBreak, func(c *feed.Command) { c.Reason = "x\r\nAction: Hangup" }),
			nil,
			fault.KindInvalid, "control character", nil},
		"hang up": {onCall(feed.ActionHangup), nil, "", "", []string{"Action: Hangup|Channel: " + call}},
		"a call gone": {onCall(feed.ActionHangup), map[string]string{"Hangup": "error: No such channel"},
			fault.KindRefused, "No such channel", nil},
		"transfer": {onCall(feed.ActionTransfer), map[string]string{"Getvar": getvar}, "", "",
			[]string{"Action: Redirect|Channel: " + call + "|Exten: 7001|Context: from-internal|Priority: 1"}},
		"no permission": {onCall(feed.ActionTransfer), map[string]string{"Getvar": "error: Permission denied"},
			fault.KindRefused, "Permission denied", nil},
		"a transfer refused": {onCall(feed.ActionTransfer),
			map[string]string{"Getvar": getvar, "Redirect": "error: Redirect failed, channel not up."},
			fault.KindRefused, "channel not up", nil},
		"hold": {onCall(feed.ActionHold), nil, fault.KindConflict, "cannot do this (hold)", nil},
		"listen": {onCall(feed.ActionListen), nil, "", "",
			[]string{"Action: Originate|Channel: PJSIP/1010|Application: ChanSpy|Data: " + call + ",uqE|" +
				"Timeout: 30000|CallerID: Trunkline <1010>|Async: true|ChannelId: 9b2f6a51-3c1d-4a53-8a7e-6b1e0c5d9f22"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t, answers: c.answers}
			p.start()
			s := openSession(t, newPlatform(t, p, fixed("demo"), nil)).(feed.Commander)
			err := s.Command(t.Context(), c.command)
			if fault.KindOf(err) != c.kind || err != nil && !strings.Contains(err.Error(), c.words) {
				t.Errorf("%v, want %q with %q", err, c.kind, c.words)
			}

			p.mu.Lock()
			defer p.mu.Unlock()

			for _, want := range c.sent {
				if !slices.Contains(p.receivedActions, want) {
					t.Errorf("%q was not sent:\n%s", want, strings.Join(p.receivedActions, "\n"))
				}
			}
		})
	}
}

// The agent alone hears a whisper, and the caller alone is sent on, whichever of the two channels the
// call is.
func TestWhoHearsTheListenerAndWhoIsSentOn(t *testing.T) {
	getvarResponse := func(v string) string {
		return "Response: Success\r\nActionID: a2\r\nVariable: x\r\nValue: " + v + "\r\n\r\n"
	}

	const caller, agent = "PJSIP/trunk-00000090", "PJSIP/1013-00000091"
	for name, c := range map[string]struct {
		action            feed.Action
		agent, name, peer string // of the call, and its channel's
		want              string
	}{
		"listen": {feed.ActionListen, "PJSIP/1013", caller, agent, "Data: 1.2,uqE|"},
		"barge":  {feed.ActionBarge, "PJSIP/1013", caller, agent, "Data: 1.2,uqEB|"},
		"whisper, the caller's channel": {feed.ActionWhisper, "PJSIP/1013", caller, agent,
			"Data: " + agent + ",qEw|"},
		"whisper, the agent's channel": {feed.ActionWhisper, "PJSIP/1013", agent, caller, "Data: 1.2,qEw|"},
		"whisper, the agent's Local channel": {feed.ActionWhisper, "Local/1007@from-queue/n",
			"Local/1007@from-queue-00000001;1", caller, "Data: 1.2,qEw|"},
		"whisper while nobody has answered": {feed.ActionWhisper, "", caller, "", ""},
		"transfer of the caller's channel": {feed.ActionTransfer, "PJSIP/1013", caller, agent,
			"Redirect|Channel: 1.2|Exten: 7001|Context: default"},
		"transfer of the agent's channel": {feed.ActionTransfer, "PJSIP/1013", agent, caller,
			"Redirect|Channel: " + caller + "|Exten: 7001|Context: default"},
		"transfer of a phone that still rings": {feed.ActionTransfer, "PJSIP/1013", agent, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t, answers: map[string]string{"Getvar CHANNEL(name)": getvarResponse(c.name),
				"Getvar BRIDGEPEER": getvarResponse(c.peer), "Getvar CHANNEL(context)": getvarResponse("default")}}
			p.start()
			s := openSession(t, newPlatform(t, p, fixed("demo"), nil)).(feed.Commander)
			err := s.Command(t.Context(),
				feed.Command{Action: c.action, CallID: "1.2", AgentID: c.agent, Extension: "1010", Destination: "7001"})
			if (c.want == "") != (fault.KindOf(err) == fault.KindConflict) {
				t.Errorf("%v", err)
			}

			p.mu.Lock()
			defer p.mu.Unlock()

			sent := strings.Join(p.receivedActions, "\n")
			if !strings.Contains(sent, c.want) ||
				c.want == "" && (strings.Contains(sent, "Originate") || strings.Contains(sent, "Redirect")) {
				t.Error(sent)
			}
		})
	}
}

// With listen_beep both parties hear it first, and nobody listens if they cannot.
func TestListeningBeepsFirst(t *testing.T) {
	const beep = "Action: Originate|Channel: Local/beep@trunkline-beep/n|Application: ChanSpy|" +
		"Data: 1.2,uqEB|Timeout: 5000"
	for name, c := range map[string]struct {
		on     bool
		answer string
		want   fault.Kind
		beeps  bool
		rings  bool
	}{
		"without":                  {on: false, rings: true},
		"with":                     {on: true, beeps: true, rings: true},
		"a dialplan that has none": {true, "error: Originate failed", fault.KindRefused, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t}
			if c.answer != "" {
				p.answers = map[string]string{"Originate": c.answer}
			}

			p.start()
			withBeep := func(cfg *feed.Config) { cfg.ListenBeep = c.on }
			s := openSession(t, newPlatform(t, p, fixed("demo"), withBeep)).(feed.Commander)
			err := s.Command(t.Context(), feed.Command{Action: feed.ActionListen, CallID: "1.2", Extension: "1010"})
			if fault.KindOf(err) != c.want {
				t.Errorf("%v, want %q", err, c.want)
			}

			p.mu.Lock()
			defer p.mu.Unlock()

			at := slices.Index(p.receivedActions, beep)
			ring := slices.IndexFunc(p.receivedActions,
				func(action string) bool { return strings.Contains(action, "PJSIP/1010") })
			if (at >= 0) != c.beeps || (ring >= 0) != c.rings || ring >= 0 && at > ring {
				t.Errorf("%q", p.receivedActions)
			}
		})
	}
}

// Nobody knows whether Asterisk took what it does not answer.
func TestASilentAsteriskMayHaveTakenTheCommand(t *testing.T) {
	p := &pbx{t: t, answers: map[string]string{"QueuePause": silence}}
	p.start()
	s := openSession(t, newPlatform(t, p, fixed("demo"), nil)).(feed.Commander)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Command(ctx,
		feed.Command{Action: feed.ActionBreak, AgentID: "PJSIP/1001"}); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("%v", err)
	}
}
