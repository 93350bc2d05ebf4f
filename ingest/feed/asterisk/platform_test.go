package asterisk

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"trunkline/ingest/feed"
)

func TestSubscription(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*feed.Config)
		want   []string
	}{
		"default": {nil, []string{"Login ", "CoreStatus ",
			"Filter ^Event: ((QueueMember|QueueCaller|Agent|Newchannel|Newstate|Dial|BridgeEnter|Hold|Unhold|DTMFEnd|HangupRequest|Hangup|BlindTransfer|AttendedTransfer|ConfbridgeJoin|ConfbridgeLeave|ContactStatus|PeerStatus|ParkedCall|UnParkedCall|Cdr|FullyBooted|Shutdown|Reload)|VarSet.*Variable: (QUEUESTATUS))",
			"GetConfig ", "Events system,call,agent,dialplan,dtmf,cdr"}},
		"words": {func(c *feed.Config) { c.Events = []string{"call", "!^Event: CEL", "agent"} },
			[]string{"Login ", "CoreStatus ", "Filter !^Event: CEL", "GetConfig ", "Events call,agent"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t}
			p.start()
			openSession(t, newPlatform(t, p, fixed("A"), test.change))
			if !slices.Equal(p.actionNames, test.want) {
				t.Errorf("got %q", p.actionNames)
			}
		})
	}
}

func TestRefusalsHaveAdvice(t *testing.T) {
	for name, test := range map[string]struct {
		answers map[string]string
		want    string
	}{
		"wrong secret": {map[string]string{"Login": "error: Authentication failed"},
			"manager.conf: [feed] with this secret, and permit ="},
		"no reporting": {map[string]string{"CoreStatus": "error: Permission denied"},
			"manager.conf, [feed]: write = reporting"},
		"a wrong filter": {map[string]string{"Filter": "error: Filter did not compile.  Check the syntax of the filter given."},
			"events: correct the filter"},
		"no known class": {map[string]string{"Events": "Response: Success\r\nActionID: a2\r\nEvents: Off\r\n\r\n"},
			"events: name classes"},
		"an unknown class": {map[string]string{"Events": "error: Invalid event mask"}, "events: name classes"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t, answers: test.answers}
			p.start()
			_, err := newPlatform(t, p, fixed("A"), nil).Connect(t.Context())
			var refusal *feed.Refusal
			if !errors.As(err, &refusal) || !strings.Contains(refusal.Advice, test.want) {
				t.Fatalf("got %#v", err)
			}
			if strings.Contains(err.Error()+refusal.Advice, "feed-secret") {
				t.Error("the error shows the secret")
			}
		})
	}

	p := &pbx{t: t}
	p.start()
	_, err := newPlatform(t, p, fixed("A"), func(c *feed.Config) { c.TLS.Enabled = true }).Connect(t.Context())
	var refusal *feed.Refusal
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Advice, "tlsbindaddr") {
		t.Fatalf("TLS to a plain port: %v", err)
	}
}
