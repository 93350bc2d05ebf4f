package identity

import (
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestEventsLoginCarriesItsFilters(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		must(s.CreateAccount(t.Context(), NewAccount{ID: "sub", Name: "sub", Domain: "sub.local", Parent: "demo"}))(t)
		token, expires, err := s.EventsLogin(t.Context(), demoLogin("alice"), Filter{
			AccountIDs: []string{"sub", "demo", "sub"}, EventTypes: []string{"AGENT_LOGIN", "AGENT_LOGIN"},
			QueueIDs: []string{"q", "q"}, AgentIDs: []string{"1002@pbx"}, CallIDs: []string{"c"},
			Names: []string{"call.*", "agent.login"}})
		if err != nil || expires != 24*time.Hour {
			t.Fatalf("expires in %s: %v", expires, err)
		}

		p := s.mustAuthenticate(t, token)
		if p.Audience != AudienceEvents || !slices.Equal(p.AccountIDs, []string{"sub", "demo"}) ||
			!slices.Equal(p.EventTypes, []string{"AGENT_LOGIN"}) || p.FamilyID != "" ||
			!slices.Equal(p.QueueIDs, []string{"q"}) || !slices.Equal(p.AgentIDs, []string{"1002@pbx"}) ||
			!slices.Equal(p.CallIDs, []string{"c"}) || !slices.Equal(p.Names, []string{"call.*", "agent.login"}) {
			t.Errorf("principal %+v", p)
		}

		token, _, err = s.EventsLogin(t.Context(), demoLogin("alice"), Filter{AccountIDs: []string{}})
		if err != nil {
			t.Fatal(err)
		}

		if p := s.mustAuthenticate(t, token); p.AccountIDs != nil || p.EventTypes != nil {
			t.Errorf("principal %+v", p)
		}
	})
}

func TestEventsLoginNamesWhatItRefuses(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	must(s.CreateAccount(t.Context(), NewAccount{ID: "other", Name: "other", Domain: "other.local"}))(t)
	_, _, err := s.EventsLogin(t.Context(), demoLogin("alice"), Filter{
		AccountIDs: []string{"demo", "other", "nowhere", ""}, EventTypes: []string{"AGENT_LOGIN", "agent_login"},
		QueueIDs: []string{"q", ""}, AgentIDs: []string{strings.Repeat("a", MaxFilterID+1)}, CallIDs: []string{"\xff"},
		Names: []string{"call.*", "call", "*"}})
	var got []string

	for _, f := range fault.As(err).Fields {
		got = append(got, f.Field+" "+f.Code+" "+f.Message)
	}

	want := []string{
		`account_ids[1] unknown_account unknown account "other"`,
		`account_ids[2] unknown_account unknown account "nowhere"`,
		`account_ids[3] unknown_account unknown account ""`,
		`event_types[1] unknown_type unknown event type "agent_login"`,
		`queue_ids[1] invalid an id has 1 to 256 bytes`,
		`agent_ids[0] invalid an id has 1 to 256 bytes`,
		`call_ids[0] invalid an id has 1 to 256 bytes`,
		`names[1] unknown_name unknown name "call"`,
		`names[2] unknown_name unknown name "*"`,
	}
	if fault.KindOf(err) != fault.KindInvalid || !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestEventsLoginTakesAtMostTwoHundredAccounts(t *testing.T) {
	var yaml strings.Builder
	yaml.WriteString("accounts: [{id: root, name: root, domain: root.local}")
	ids := []string{"root"}

	for i := range maxFilterAccounts {
		id := strings.Repeat("a", 60) + string(rune('a'+i/26)) + string(rune('a'+i%26))
		ids = append(ids, id)
		yaml.WriteString(", {id: " + id + ", name: " + id + ", domain: " + id + ".local, parent: root}")
	}

	yaml.WriteString("]\nusers: [{account: root, username: u, password: " + password + "}]")
	big := startService(t, testdb.SQLite(t), Config{})
	if err := big.Seed(t.Context(), []byte(yaml.String())); err != nil {
		t.Fatal(err)
	}

	c := LoginRequest{Username: "u", Password: password, Domain: "root.local"}
	token, _, err := big.EventsLogin(t.Context(), c,
		Filter{AccountIDs: append(ids[:maxFilterAccounts:maxFilterAccounts], ids[0])})
	if err != nil {
		t.Fatal(err)
	}

	if p := big.mustAuthenticate(t, token); len(p.AccountIDs) != maxFilterAccounts {
		t.Errorf("%d accounts", len(p.AccountIDs))
	}

	_, _, err = big.EventsLogin(t.Context(), c, Filter{AccountIDs: ids})
	if f := fault.As(err); f.Kind != fault.KindInvalid || f.Fields[0].Code != "too_many" {
		t.Errorf("got %v", err)
	}
}
