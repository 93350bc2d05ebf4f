package settings

import (
	"slices"
	"testing"

	"trunkline/ingest/feed"
	"trunkline/internal/setting"
)

func TestReservedDomainsAreTheHostsOfTheSettings(t *testing.T) {
	s := Default()
	s.Listen = "Calls.Example.com:9443"
	s.SIP.Server.DefaultDomain = "later.example"
	s.SIP.Calls.Trunk.Address = "trunk.example:5060"
	s.SIP.Server.Advertise = "192.0.2.1"
	s.Auth.OIDC.Issuer, s.Auth.OIDC.RedirectURL = "https://id.example/realms/x", "https://board.example/auth/oidc/callback"
	s.Feeds = []feed.Config{
		{Address: "pbx.example:8021", User: "trunkline@switch.example"}, {Address: "10.0.0.1:5038", Account: "Later"},
		{Accounts: []feed.AccountRule{{Match: "*", Account: "of-a-rule"}}},
		{URL: setting.URL("amqps://u:p@rabbit.example:5671/x"), CrossbarURL: "https://crossbar.example:8443"},
	}

	got := s.ReservedDomains("host", "Name.Example.")
	want := []string{
		"board.example", "calls.example.com", "crossbar.example", "host", "id.example", "later", "later.example",
		"name.example",
		"of-a-rule", "pbx.example", "rabbit.example", "switch.example", "trunk.example",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
