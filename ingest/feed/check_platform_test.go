package feed

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"trunkline/event/state"
)

// knownAccounts is a Directory: ids by name.
type knownAccounts map[string]string

func (d knownAccounts) Resolve(ref string) (string, bool)     { id, ok := d[ref]; return id, ok }
func (d knownAccounts) ByDomain(domain string) (string, bool) { return d.Resolve(domain) }

func TestAccountsThatDoNotExistAreReported(t *testing.T) {
	known := knownAccounts{"acme": "a1"}
	for _, cfg := range []Config{
		{}, {Account: "acme"}, {Accounts: []AccountRule{{Match: "*", Account: "acme"}}},
	} {
		var r CheckResult
		r.checkAccounts(cfg, known)
		if len(r.Problems) > 0 {
			t.Errorf("%+v: %v", cfg, r.Problems)
		}
	}

	for _, cfg := range []Config{
		{Account: "nosuch"}, {Accounts: []AccountRule{{Match: "a", Account: "acme"}, {Match: "b", Account: "nosuch"}}},
	} {
		var r CheckResult
		r.checkAccounts(cfg, known)
		if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Message, `there is no account "nosuch"`) {
			t.Errorf("%+v: got %v", cfg, r.Problems)
		}
	}
}

// checkedPlatform is a platform and its only session. A nil event never comes.
type checkedPlatform struct {
	Session
	refusal, snapshotError, readError error
	event                             *Event
}

func (p *checkedPlatform) Connect(context.Context) (Session, error) { return p, p.refusal }
func (p *checkedPlatform) Subscription() []string                   { return []string{"agents"} }
func (p *checkedPlatform) Close() error                             { return nil }

func (p *checkedPlatform) Snapshot(context.Context) (Snapshot, error) {
	return Snapshot{Objects: []Object{{Kind: state.Agent}, {Kind: state.Call}, {Kind: state.Agent}},
		Notes: []string{"no devices"}}, p.snapshotError
}

func (p *checkedPlatform) Read(ctx context.Context) ([]Event, error) {
	if p.event == nil && p.readError == nil {
		<-ctx.Done()
		return nil, errors.New("the connection is closed")
	}
	if p.readError != nil {
		return nil, p.readError
	}
	return []Event{{Hole: 1}, *p.event}, nil
}

func TestACheckTellsWhatItFound(t *testing.T) {
	event := &Event{Format: "svc.cc", Value: []byte(`{"a":1}`), Names: []string{"sales"}}
	for name, c := range map[string]struct {
		platform  checkedPlatform
		cfg       Config
		connected bool
		problem   string
		advice    string
	}{
		"refused": {platform: checkedPlatform{refusal: &Refusal{errors.New("wrong password"),
			"set password"}}, problem: "connecting: wrong password", advice: "set password"},
		"no state": {platform: checkedPlatform{snapshotError: errors.New("denied"), event: event},
			connected: true, problem: "reading the platform snapshot: denied"},
		"the connection is lost": {platform: checkedPlatform{readError: errors.New("EOF")}, connected: true,
			problem: "reading events: EOF"},
		"no numbers": {platform: checkedPlatform{event: event}, cfg: Config{Redundancy: 2}, connected: true,
			problem: "redundancy: 2 needs"},
		"no event": {connected: true},
		"an event": {platform: checkedPlatform{event: event}, connected: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := Check(t.Context(), c.cfg, &c.platform, knownAccounts{}, 20*time.Millisecond)
			if r.Connected != c.connected || r.OK != (c.problem == "") {
				t.Fatalf("got %+v", r)
			}

			if c.problem != "" &&
				(len(r.Problems) != 1 || !strings.HasPrefix(r.Problems[0].Message, c.problem) ||
					r.Problems[0].Advice != c.advice) {
				t.Errorf("problems %+v", r.Problems)
			}

			if c.platform.snapshotError == nil && c.connected &&
				(r.State == nil || r.State.Agents != 2 || r.State.Calls != 1 || len(r.State.Notes) != 1 ||
					r.Subscription[0] != "agents") {
				t.Errorf("state %+v", r.State)
			}

			if name == "an event" &&
				(r.Event == nil || string(r.Event.Value) != `{"a":1}` || r.Event.Names[0] != "sales" ||
					r.Event.Account != "") {
				t.Errorf("event %+v", r.Event)
			}
		})
	}
}
