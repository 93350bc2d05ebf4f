package asterisk

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/ingest/feed"
)

func TestAccountIsLearned(t *testing.T) {
	rules := accounts{"acme": "A", "beta": "B", "acme-*": "A", "beta-*": "B", "from-acme": "A"}
	byVariable := func(c *feed.Config) { c.AccountVariable = "TENANT" }
	for name, test := range map[string]struct {
		change func(*feed.Config)
		events string
		want   string // account of each event
	}{
		"code set after the first events": {byCode,
			leg("Newchannel", "1", "1", "AccountCode: ") + leg("Newstate", "1", "2", "AccountCode: ") +
				leg("Newstate", "1", "1", "AccountCode: acme") + leg("Hangup", "1", "2"), "A A A A"},
		"variable of a VarSet": {byVariable,
			leg("Newchannel", "1", "1") + leg("VarSet", "1", "1", "Variable: __TENANT", "Value: beta") +
				leg("Hangup", "1", "1"), "B B"},
		"channel variable": {byVariable, leg("Newchannel", "1", "1", "ChanVariable: TENANT=", "ChanVariable: x=1") +
			leg("Newstate", "1", "1", "ChanVariable: x=1", "ChanVariable: TENANT=beta"), "B B"},
		"queue": {nil,
			leg("Newchannel", "1", "1") + leg("QueueCallerJoin", "1", "1", "Queue: beta-sales") +
				leg("Hangup", "1", "1"), "B B B"},
		"context": {nil,
			leg("Newchannel", "1", "1", "Context: from-acme") + leg("Hangup", "1", "1", "Context: agents"), "A A"},
		"queue before context": {nil,
			leg("Newchannel", "1", "1", "Context: from-acme") +
				leg("QueueCallerJoin", "1", "1", "Queue: beta-x", "Context: from-acme") +
				leg("Hangup", "1", "1", "Context: from-acme"), "A B B"},
		"shared agent": {nil,
			amiEvent("QueueMemberStatus", "Queue: acme-a", "Interface: PJSIP/1", "Status: 1") +
				amiEvent("QueueMemberStatus", "Queue: beta-b", "Interface: PJSIP/1", "Status: 1"), "A B"},
		"record of a learned call": {byCode,
			leg("Newchannel", "1", "1", "AccountCode: acme") + amiEvent("Cdr", "AccountCode: ", "UniqueID: 1"), "A A"},
		"phone of a member": {nil,
			amiEvent("QueueMemberAdded", "Queue: acme-a", "Interface: PJSIP/1", "Status: 1") +
				amiEvent("ContactStatus", "EndpointName: 1", "ContactStatus: Reachable"), "A A"},
		"unknown": {byCode,
			leg("Newchannel", "1", "1", "AccountCode: other", "Context: x") + leg("Hangup", "1", "1"), "- -"},
		"fixed codes are not used": {nil, leg("Newchannel", "1", "1", "AccountCode: acme"), "-"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t, events: test.events, end: true}
			p.start()
			events, _ := readAll(t, openSession(t, newPlatform(t, p, rules, test.change)))
			var got []string

			for _, e := range events {
				if e.Account == "" {
					got = append(got, "-")
					if len(e.Names) == 0 && name == "unknown" && strings.Contains(string(e.Value), "other") {
						t.Error("the names that were looked up are missing")
					}
					continue
				}

				got = append(got, e.Account)
			}

			if strings.Join(got, " ") != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

func TestMemoryOfAccountsIsBounded(t *testing.T) {
	tenants := newAccountLookup(&feed.Config{}, accounts{})
	for i := range 3 * maxCachedIDs {
		tenants.store(fmt.Sprint(i), cachedAccount{"A", true})
	}

	if n := len(tenants.recent) + len(tenants.older); n > 2*maxCachedIDs {
		t.Errorf("%d ids", n)
	}
	if tenants.cached(fmt.Sprint(3*maxCachedIDs-1)).account != "A" {
		t.Error("the last id is forgotten")
	}
}
