package app

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"trunkline/aisession"
	"trunkline/audit"
	"trunkline/control"
	"trunkline/identity"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
)

// knownCalls is a platform that knows some calls and refuses transfers to 666.
type knownCalls struct {
	ids   []string
	asked []string
}

func (k *knownCalls) Act(ctx context.Context, r control.Request) (string, error) {
	actor := audit.CallerOf(ctx).Actor
	k.asked = append(k.asked,
		fmt.Sprintf("%s %s %s: %s by %s, %s %s", r.Account.ID, r.CallID, r.Action, r.Destination, actor, r.Caller.Role,
			r.Caller.AccountID))

	switch {
	case !slices.Contains(k.ids, r.CallID):
		return "", fault.NotFound("Call not found")
	case r.Destination == "666":
		return "", fault.New(fault.KindRefused, "no such extension")
	}

	return "action-1", nil
}

// A provider acts on the caller's leg, which is the other one where its own is only that of the audio.
func TestAProviderActsOnTheCallThatThePlatformKnows(t *testing.T) {
	tree := identity.NewTree(identity.Account{ID: "acme", Name: "acme", Domain: "acme.example"})

	both := aiprotocol.Call{CallID: "audio", OtherLegCallID: "caller"}
	const by = " by ai_provider:p1, admin acme"
	for name, c := range map[string]struct {
		known       []string
		account     string
		call        aiprotocol.Call
		destination string // "" hangs up
		want        []string
		kind        fault.Kind
	}{
		"the other leg": {[]string{"caller"}, "acme", both, "7000",
			[]string{"acme caller transfer: 7000" + by}, ""},
		"its own, of no other": {[]string{"audio"}, "acme", aiprotocol.Call{CallID: "audio"}, "",
			[]string{"acme audio hangup: " + by}, ""},
		"its own, the other is not": {[]string{"audio"}, "acme", both, "",
			[]string{"acme caller hangup: " + by, "acme audio hangup: " + by}, ""},
		"refused": {[]string{"caller", "audio"}, "acme", both, "666",
			[]string{"acme caller transfer: 666" + by}, fault.KindRefused},
		"neither": {nil, "acme", both, "7000",
			[]string{"acme caller transfer: 7000" + by, "acme audio transfer: 7000" + by}, fault.KindNotFound},
		"a deleted account": {[]string{"caller"}, "gone", both, "7000", nil, fault.KindNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			calls := &knownCalls{ids: c.known}
			p := &platformControl{tree: func() *identity.Tree { return tree }, control: calls}
			of := aisession.PlatformCall{AccountID: c.account, ProviderID: "p1", Call: c.call}
			act := func() error { return p.Hangup(t.Context(), of) }

			if c.destination != "" {
				act = func() error { return p.Transfer(t.Context(), of, c.destination) }
			}

			err := act()
			if (err != nil) != (c.kind != "") || err != nil && fault.KindOf(err) != c.kind ||
				!slices.Equal(calls.asked, c.want) {
				t.Errorf("asked %q: %v", calls.asked, err)
			}
		})
	}

	without := &platformControl{tree: func() *identity.Tree { return tree }}
	if err := without.Hangup(t.Context(),
		aisession.PlatformCall{AccountID: "acme", Call: both}); fault.KindOf(err) != fault.KindNotFound {
		t.Errorf("without feeds: %v", err)
	}
}

// A rule's provider hears a call as itself and with a key; a person has one heard as who asked.
func TestAProviderHearsAPlatformsCall(t *testing.T) {
	tree := identity.NewTree(identity.Account{ID: "acme", Name: "acme", Domain: "acme.example"})
	calls := &knownCalls{ids: []string{"c1"}}
	p := &platformControl{tree: func() *identity.Tree { return tree }, control: calls}
	ctx := audit.WithCaller(t.Context(), audit.Caller{Actor: "user:anna"})
	of := aisession.PlatformCall{AccountID: "acme", ProviderID: "p1", Call: aiprotocol.Call{CallID: "c1"}}

	for _, byRule := range []bool{false, true} {
		if err := p.AddListener(ctx, of, aisession.ListenRequest{SessionID: "s1", ByRule: byRule}); err != nil {
			t.Error(err)
		}
	}

	of.CallID = "c2"
	if err := p.AddListener(ctx, of, aisession.ListenRequest{}); fault.KindOf(err) != fault.KindNotFound {
		t.Errorf("an unknown call: %v", err)
	}

	want := []string{"acme c1 hear:  by user:anna, admin acme", "acme c1 hear:  by ai_provider:p1, admin acme",
		"acme c2 hear:  by user:anna, admin acme"}
	if !slices.Equal(calls.asked, want) {
		t.Errorf("asked %q", calls.asked)
	}
}
