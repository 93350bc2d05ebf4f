package asterisk

import (
	"slices"
	"strings"
	"testing"

	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/internal/setting"
)

// Each voice of a call is heard by a ChanSpy of its own, until its channel ends; while there is one only, none is.
func TestAProviderHearsBothVoices(t *testing.T) {
	const by = "WebSocket/{provider}/c(slin)f(json)v({parameters})"
	getvarResponse := func(v string) string {
		return "Response: Success\r\nActionID: a2\r\nVariable: x\r\nValue: " + v + "\r\n\r\n"
	}
	const caller, agent = "PJSIP/trunk-00000090", "PJSIP/1013-00000091"
	const asCaller = "Action: Originate|Channel: WebSocket/p1/c(slin)f(json)v(callerIdNumber=%2B4930123456," +
		"otherLegCallId=1.2,sessionId=5f0e,track=caller)|Application: ChanSpy|Data: "
	const asCallee = "Action: Originate|Channel: WebSocket/p1/c(slin)f(json)v(callerIdNumber=%2B4930123456," +
		"otherLegCallId=1.2,track=callee)|Application: ChanSpy|Data: "

	for name, c := range map[string]struct {
		by, agent, name, peer string
		sent                  []string // the targets of the two
		want                  fault.Kind
	}{
		"the caller's channel": {by, "PJSIP/1013", caller, agent, []string{"1.2,uqoE", agent + ",qoE"}, ""},
		"the agent's channel":  {by, "PJSIP/1013", agent, caller, []string{caller + ",qoE", "1.2,uqoE"}, ""},
		"not connected yet":    {by, "PJSIP/1013", caller, "", nil, fault.KindConflict},
		"no channel to send":   {"", "PJSIP/1013", caller, agent, nil, fault.KindConflict},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t, answers: map[string]string{"Getvar CHANNEL(name)": getvarResponse(c.name),
				"Getvar BRIDGEPEER": getvarResponse(c.peer)}}
			p.start()
			listens := func(cfg *feed.Config) { cfg.ListenBy = setting.Secret(c.by) }
			s := openSession(t, newPlatform(t, p, fixed("demo"), listens)).(feed.Commander)
			err := s.Command(t.Context(), feed.Command{Action: feed.ActionAddListener, CallID: "1.2", AgentID: c.agent,
				ProviderID: "p1", SessionID: "5f0e", Caller: "+4930123456"})
			if fault.KindOf(err) != c.want {
				t.Errorf("%v, want %q", err, c.want)
			}

			p.mu.Lock()
			defer p.mu.Unlock()

			var want []string
			for i, target := range c.sent {
				want = append(want, []string{asCaller, asCallee}[i]+target+"|Timeout: 10000|Async: true")
			}

			sent := slices.DeleteFunc(slices.Clone(p.receivedActions),
				func(action string) bool { return !strings.HasPrefix(action, "Action: Originate") })
			if !slices.Equal(sent, want) {
				t.Errorf("sent\n%s\nwant\n%s", strings.Join(sent, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}
