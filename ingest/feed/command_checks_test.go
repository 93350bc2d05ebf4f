package feed

import (
	"context"
	"errors"
	"strings"
	"testing"

	"trunkline/internal/fault"
)

// takingSession takes every command.
type takingSession struct {
	Session
	taken []Command
}

func (s *takingSession) Command(_ context.Context, c Command) error {
	s.taken = append(s.taken, c)
	return nil
}

// On a platform of several tenants nobody makes an agent a member of another tenant's queue: it
// would get that tenant's callers.
func TestAnAgentJoinsNoQueueOfAnotherTenant(t *testing.T) {
	directory := fakeDirectory{"acme.example": "acme", "victim.example": "victim"}
	rules := []AccountRule{{"acme-*", "acme"}, {"victim-*", "victim"}}
	for name, c := range map[string]struct {
		cfg    Config
		action Action
		queue  string
		taken  bool
	}{
		"FreeSWITCH, a queue of the tenant": {Config{Kind: KindFreeSWITCH}, ActionJoin, "sales@acme.example",
			true},
		"FreeSWITCH, another tenant's": {Config{Kind: KindFreeSWITCH}, ActionJoin, "sales@victim.example",
			false},
		"FreeSWITCH, another tenant's behind ours": {Config{Kind: KindFreeSWITCH}, ActionJoin,
			"sales@acme.example@victim.example", false},
		"FreeSWITCH, a queue of nobody": {Config{Kind: KindFreeSWITCH}, ActionJoin, "sales@default", false},
		"FreeSWITCH, a switch of the tenant's own": {Config{Kind: KindFreeSWITCH, Account: "acme"}, ActionJoin,
			"sales@default", true},
		"Asterisk, a queue of the tenant": {Config{Kind: KindAsterisk, Accounts: rules}, ActionLogin,
			"acme-sales", true},
		"Asterisk, another tenant's": {Config{Kind: KindAsterisk, Accounts: rules}, ActionLogin,
			"victim-sales", false},
		"Asterisk, leaving another tenant's": {Config{Kind: KindAsterisk, Accounts: rules}, ActionLeave,
			"victim-sales", false},
		"Kazoo, by Crossbar in the agent's own": {Config{Kind: KindKazoo}, ActionJoin,
			"5c1f0a9be2d3347788aa01cd5c1f0a9b", true},
		"a call of a queue": {Config{Kind: KindAsterisk, Accounts: rules}, ActionHangup, "sales",
			true},
		"an agent without a queue": {Config{Kind: KindFreeSWITCH}, ActionBreak, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			c.cfg.Name = "pbx"
			r := &runner{cfg: c.cfg, accounts: NewAccounts(c.cfg, directory)}
			platform := &takingSession{}
			session := Session(platform)
			r.session.Store(&session)
			err := (&Service{runners: []*runner{r}}).Command(t.Context(), "pbx",
				Command{Action: c.action, AccountID: "acme", AgentID: "1001", QueueID: c.queue})

			switch {
			case c.taken && (err != nil || len(platform.taken) != 1):
				t.Errorf("refused: %v", err)
			case !c.taken && (fault.KindOf(err) != fault.KindNotFound || len(platform.taken) != 0):
				t.Errorf("the platform got %v, the caller %v", platform.taken, err)
			}
		})
	}
}

// A number or extension is one of the dialplan or of a phone, and nothing that names a trunk or
// another tenant's phone; ids are one word.
func TestCheckCommand(t *testing.T) {
	for _, hostile := range []string{"1 2", "1\r\nAction: x", "{a=b}1", "1,2", "1|2", "1&2", "'1'", "${x}", "1;2", "ä",
		"1\\2", "(1)", "^1"} {
		for name, c := range map[string]Command{
			"agent": {AgentID: hostile}, "queue": {QueueID: hostile}, "call": {CallID: hostile},
			"one of the queues": {Queues: []string{"a", hostile}},
			"domain":            {Domain: hostile}, "destination": {Destination: hostile},
			"extension": {Extension: hostile},
		} {
			if err := CheckCommand(c); fault.KindOf(err) != fault.KindConflict {
				t.Errorf("%s %q: %v", name, hostile, err)
			}
		}
	}

	for _, dialled := range []string{"+4990012345@trunk", "trunk/sip:+4990012345", "1001@victim.example", "sip:1001",
		"loopback/1", "~1"} {
		for name, c := range map[string]Command{"destination": {Destination: dialled},
			"extension": {Extension: dialled}} {
			if err := CheckCommand(c); fault.KindOf(err) != fault.KindConflict {
				t.Errorf("%s %q: %v", name, dialled, err)
			}
		}
	}

	for _, text := range []string{"a\r\nAction: x", "\x00", "a\x7f"} {
		if err := CheckCommand(Command{AgentName: text}); fault.KindOf(err) != fault.KindConflict ||
			!strings.Contains(err.Error(), "agent's name") {
			t.Errorf("an agent's name %q: %v", text, err)
		}

		var refused *fault.Error
		if err := CheckCommand(Command{Reason: text}); !errors.As(err, &refused) ||
			refused.Kind != fault.KindInvalid || len(refused.Fields) != 1 || refused.Fields[0].Field != "reason" {
			t.Errorf("a reason %q: %v", text, err)
		}
	}

	for _, number := range []string{"1001", "+4930123456", "*98", "#1", "alice", "ai-support", "a.b_c"} {
		if err := CheckCommand(
			Command{Destination: number, Extension: number, AgentID: "Local/" + number + "@agents/n"}); err != nil {
			t.Errorf("%s: %v", number, err)
		}
	}
}
