package freeswitch

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/ingest/feed"
)

type accountRow struct {
	About    string        `json:"about"`
	Account  string        `json:"account"`
	Names    []string      `json:"names,omitempty"`
	Format   string        `json:"format"`
	Identity feed.Identity `json:"identity"`
	Resync   bool          `json:"resync,omitempty"`
	Subjects []string      `json:"subjects,omitempty"`
}

func TestAccountsOfEvents(t *testing.T) {
	for name, cfg := range map[string]feed.Config{
		"domains": {Accounts: []feed.AccountRule{{Match: "gamma-*", Account: "gamma"}}},
		"settings": {Accounts: []feed.AccountRule{{Match: "gamma-*", Account: "gamma"}}, UseAccountcode: true,
			AccountVariable: "sip_auth_realm"},
	} {
		t.Run(name, func(t *testing.T) {
			var rows []accountRow
			var events []string
			for _, line := range lines(t, "testdata/accounts.in.jsonl") {
				var one struct {
					About string
					Event json.RawMessage
				}
				if err := json.Unmarshal([]byte(line), &one); err != nil {
					t.Fatal(err)
				}

				rows, events = append(rows, accountRow{About: one.About}), append(events, string(one.Event))
			}

			f := &fakeSwitch{answers: answers(t, "fusionpbx"), play: func(p *peer) { p.events(events...) }}
			s := openSession(t,
				f.serve(t).newPlatform(t, cfg, domains{"acme.example.com": "acme", "beta.example.com": "beta"}))
			for i, e := range read(t, s, len(events)) {
				rows[i].Account, rows[i].Names, rows[i].Format = e.Account, e.Names, e.Format
				rows[i].Identity, rows[i].Resync, rows[i].Subjects = e.Identity, e.Resync, e.Subjects
			}

			golden(t, "accounts."+name+".jsonl", rows)
		})
	}
}

// An agent that was added after the connect is looked up, but not for each event.
func TestUnknownAgentIsAskedFor(t *testing.T) {
	const agents, tiers = "callcenter_config agent list", "callcenter_config tier list"
	status := func(agent string) string {
		return `{"Event-Name":"CUSTOM","Event-Subclass":"callcenter::info","CC-Action":"agent-status-change","CC-Agent":"` +
			agent + `","CC-Agent-Status":"Available"}`
	}

	for name, test := range map[string]struct {
		pause time.Duration
		want  string
		asked int // with the connect
	}{"asked long ago": {0, "acme", 2}, "asked just now": {time.Hour, "", 1}} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSwitch{answers: map[string]string{agents: "+OK\n", tiers: "+OK\n"}}
			f.play = func(p *peer) {
				f.answer(agents, "name|contact\nnew|user/1001@acme.example.com\n+OK\n")
				p.events(status("new"), status("new"))
			}

			p := f.serve(t).newPlatform(t, feed.Config{}, domains{"acme.example.com": "acme"})
			p.refreshPause = test.pause
			for i, e := range read(t, openSession(t, p), 2) {
				if e.Account != test.want {
					t.Errorf("event %d has the account %q, want %q", i, e.Account, test.want)
				}
			}

			if got := f.timesReceived("api " + agents); got != test.asked {
				t.Errorf("the agents were asked for %d times, want %d", got, test.asked)
			}
		})
	}
}

// TestASwitchThatHangsIsNotAskedForAgentsAgainAtOnce: a query that is not answered takes longer than the pause between
// two, and no event is read meanwhile.
func TestASwitchThatHangsIsNotAskedForAgentsAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		known := &accountCache{}
		hang := func() error {
			time.Sleep(commandTimeout)
			return errors.New("no answer")
		}

		asked, err := known.tryAskForAgents(refreshPause, hang)
		if !asked || err == nil {
			t.Fatalf("asked %v, %v", asked, err)
		}

		time.Sleep(refreshPause - time.Nanosecond)
		asked, _ = known.tryAskForAgents(refreshPause, hang)
		if asked {
			t.Errorf("asked again %v after the query ended", refreshPause-time.Nanosecond)
		}

		time.Sleep(time.Nanosecond)
		asked, _ = known.tryAskForAgents(refreshPause, hang)
		if !asked {
			t.Errorf("not asked again %v after the query ended", refreshPause)
		}
	})
}

// TestAnEventDoesNotWaitForTheAgentsOfASnapshot: the switch does not answer the snapshot's query.
func TestAnEventDoesNotWaitForTheAgentsOfASnapshot(t *testing.T) {
	const agents, tiers = "callcenter_config agent list", "callcenter_config tier list"
	f := &fakeSwitch{answers: map[string]string{agents: "+OK\n", tiers: "+OK\n"}}
	f.play = func(p *peer) {
		f.answer(agents, silence)
		for f.timesReceived("api "+agents) < 2 {
			time.Sleep(time.Millisecond)
		}
		p.events(`{"Event-Name":"CUSTOM","Event-Subclass":"callcenter::info","CC-Action":"agent-status-change",` +
			`"CC-Agent":"new","CC-Agent-Status":"Available"}`)
	}

	p := f.serve(t).newPlatform(t, feed.Config{}, domains{})
	p.refreshPause = 0
	s := openSession(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = s.Snapshot(ctx) // has no answer
	}()

	read(t, s, 1)
	if got := f.timesReceived("api " + agents); got != 2 {
		t.Errorf("the agents were asked for %d times, want by the connect and the snapshot", got)
	}

	cancel()
	<-ended
}
