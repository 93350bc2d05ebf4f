package fanout

import (
	"slices"
	"testing"
)

// One host may use any address of its /64, and one customer any /64 of its /56.
func TestConnectionsAreCountedByNetwork(t *testing.T) {
	c := Config{Settings: DefaultSettings()}
	account, user := Scope{"account:a", 20000}, Scope{"user:u", 200}
	for address, want := range map[string][]Scope{
		"192.0.2.7": {account, user, {"address:192.0.2.7", 2000}},
		"2001:db8:1:2ab:3:4:5:6": {account, user, {"address:2001:db8:1:2ab::/64", 2000},
			{"address:2001:db8:1:200::/56", 4000}},
	} {
		if got := c.scopes("a", "u", address); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}

	c.MaxConnectionsPerAccount, c.MaxConnectionsPerUser, c.MaxConnectionsPerAddress = 0, 0, 0
	if got := c.scopes("a", "u", "2001:db8::1"); got != nil {
		t.Errorf("without limits: %v", got)
	}
}
