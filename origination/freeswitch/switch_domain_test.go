package freeswitch

import (
	"slices"
	"strings"
	"testing"

	"trunkline/origination"
	"trunkline/origination/drivertest"
)

// While origination.freeswitch.domain is unset, the switch's own domain and the domain with the owner
// determine the domain in which the owner is dialled; the log has the switch's answers.
func TestTheDomainIsAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		own        string
		users      []string
		configured string
		want       string
		asks       []string
		says       []string
	}{
		"the account's": {"10.0.0.5", []string{"1001@pbx.example", "1001@10.0.0.5"}, "", "pbx.example",
			[]string{"1001@pbx.example"}, []string{"domain=10.0.0.5", "account_domain=pbx.example domain=pbx.example"}},
		"the switch's own, as vanilla has it": {"10.0.0.5", []string{"1001@10.0.0.5"}, "", "10.0.0.5",
			[]string{"1001@pbx.example", "1001@10.0.0.5"},
			[]string{"domain=10.0.0.5", "account_domain=pbx.example domain=10.0.0.5"}},
		"in neither": {"10.0.0.5", nil, "", "pbx.example",
			[]string{"1001@pbx.example", "1001@10.0.0.5", "1001@pbx.example", "1001@10.0.0.5"},
			[]string{"level=WARN", "set origination.freeswitch.domain", "switch_domain=10.0.0.5"}},
		"the switch has none": {"", []string{"1001@elsewhere"}, "", "pbx.example",
			[]string{"1001@pbx.example", "1001@pbx.example"}, []string{`domain=""`, "level=WARN"}},
		"a domain that cannot be dialled": {"a b", []string{"1001@pbx.example"}, "", "pbx.example",
			[]string{"1001@pbx.example"}, []string{`domain=""`}},
		"configured": {"10.0.0.5", []string{"1001@pbx.example"}, "sip.example", "sip.example", nil,
			[]string{"configured_domain=sip.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScripted(t, &scriptedSwitch{domain: c.own, users: c.users})
			cfg := s.driverConfig()
			cfg.Domain = c.configured
			d, probe, j := follow(t, cfg)

			for _, id := range []string{"a", "b"} { // the second is found without asking again
				if _, err := d.Originate(t.Context(), drivertest.OrderTo(id, "2001")); err != nil {
					t.Fatal(err)
				}
				j.Await(t, id, origination.Ended)
			}

			s.Mu.Lock()
			defer s.Mu.Unlock()

			if !slices.Equal(s.ownerDomains, []string{c.want, c.want}) || !slices.Equal(s.userQueries, c.asks) {
				t.Errorf("dialled in %v, want %s; asked for %v, want %v", s.ownerDomains, c.want, s.userQueries, c.asks)
			}

			for _, text := range c.says {
				if !strings.Contains(probe.Log.String(), text) {
					t.Errorf("the log has no %q:\n%s", text, probe.Log)
				}
			}
		})
	}
}
