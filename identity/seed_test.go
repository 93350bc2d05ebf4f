package identity

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

const directoryYAML = `
accounts:
  - {id: leaf, name: Leaf, domain: leaf.local, parent: mid.local, time_zone: Asia/Tokyo}
  - {id: mid, name: Mid, domain: Mid.Local, parent: Root}
  - {name: Root, domain: root.local}
users:
  - {account: leaf, username: alice, password: "the first password, river", presence_id: 1001}
  - {account: Root, username: alice, password: "the second password, river", role: admin}
  - {account: leaf, username: lea, password: "the third password, river", role: supervisor, queue_ids: [sales, support]}
  - {account: leaf, username: abe, password: "the fourth password, river", role: agent, agent_ids: [1003@leaf.local]}
  - {account: leaf, username: ada, password: "the fifth password, river", role: auditor}
`

func TestSeedStoresADirectoryOnce(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{})
		for range 2 {
			if err := s.Seed(t.Context(), []byte(directoryYAML)); err != nil {
				t.Fatal(err)
			}
		}

		root, ok := s.Tree().Resolve("Root")
		if path := s.Tree().Path("leaf"); !ok || len(path) != 3 || path[2] != root.ID {
			t.Errorf("path %v", path)
		}
		if leaf, _ := s.Tree().Account("leaf"); leaf.Location().String() != "Asia/Tokyo" ||
			root.Location().String() != "UTC" {
			t.Errorf("time zones %s, %s", leaf.Location(), root.Location())
		}

		session := must(
			s.Login(t.Context(),
				LoginRequest{Username: "alice", Password: "the first password, river", Domain: "LEAF.local"}))(t)
		if session.User.PresenceID != "1001" || session.User.Role != RoleUser {
			t.Errorf("user %+v", session.User)
		}

		session = must(s.Login(t.Context(),
			LoginRequest{Username: "alice", Password: "the second password, river", Domain: "root.local"}))(t)
		if session.User.Role != RoleAdmin || session.User.AccountID != root.ID {
			t.Errorf("user %+v", session.User)
		}

		var roles []string
		for _, u := range must(s.ListUsers(t.Context(), "leaf"))(t) {
			roles = append(roles, fmt.Sprint(u.Username, " ", u.Role, u.QueueIDs, u.AgentIDs))
		}

		slices.Sort(roles)
		want := []string{"abe agent[] [1003@leaf.local]", "ada auditor[] []", "alice user[] []",
			"lea supervisor[sales support] []"}
		if !slices.Equal(roles, want) {
			t.Errorf("the roles are %q, want %q", roles, want)
		}
		if seeded, err := s.SeedDemo(t.Context(), password); seeded || err != nil {
			t.Errorf("the demo came after: %v, %v", seeded, err)
		}
	})
}

func TestSeedRefusesTheWholeFile(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{})
	const good = "accounts: [{id: a, name: a, domain: a.local}]\n"
	for name, c := range map[string]struct{ yaml, want string }{
		"empty":         {"", "it is empty"},
		"not YAML":      {"accounts: [", "line 1"},
		"another shape": {"- a\n- b\n", "line 1"},
		"a tab":         {"accounts:\n\t- a", "line"},
		"unknown key": {good + "users:\n- {account: a, username: u, password: p, colour: red}",
			"line 3: field colour not found"},
		"unknown section": {good + "groups: []", "line 2: field groups not found"},
		"two documents":   {good + "---\n" + good, "more than one document"},
		"a key twice":     {good + good, "line 2"},
		"bad id":          {"accounts: [{id: a b, name: a, domain: a.local}]", "accounts[0].id invalid"},
		"no name":         {"accounts: [{id: a, domain: a.local}]", "accounts[0].name required"},
		"no domain":       {"accounts: [{id: a, name: a}]", "accounts[0].domain required"},
		"id twice": {"accounts: [{id: a, name: a, domain: a.local}, {id: a, name: b, domain: b.local}]",
			"accounts[1].id taken"},
		"domain twice": {"accounts: [{id: a, name: a, domain: a.local}, {id: b, name: b, domain: A.local}]",
			"accounts[1].domain taken"},
		"unknown parent": {"accounts: [{id: a, name: a, domain: a.local, parent: b}]",
			"accounts[0].parent unknown_account"},
		"its own parent": {"accounts: [{id: a, name: a, domain: a.local, parent: a}]", "accounts invalid"},
		"no time zone": {"accounts: [{id: a, name: a, domain: a.local, time_zone: Mars/Olympus}]",
			"accounts[0].time_zone invalid"},
		"the machine's": {"accounts: [{id: a, name: a, domain: a.local, time_zone: Local}]",
			"accounts[0].time_zone invalid"},
		"a ring": {"accounts: [{id: a, name: a, domain: a.local, parent: b}, {id: b, name: b, domain: b.local, parent: a}]",
			"accounts invalid"},
		"no account": {good + "users: [{username: u, password: p}]", "users[0].account unknown_account"},
		"unknown account": {good + "users: [{account: b, username: u, password: p}]",
			"users[0].account unknown_account"},
		"no password": {good + "users: [{account: a, username: u}]", "users[0].password required"},
		"bad role": {good + "users: [{account: a, username: u, password: p, role: root}]",
			"users[0].role invalid"},
		"bad extension": {good + "users: [{account: a, username: u, password: p, presence_id: 1 2}]",
			"users[0].presence_id invalid"},
		"username twice": {good +
			"users: [{account: a, username: u, password: p}, {account: a.local, username: U, password: p}]",
			"users[1].username taken"},
		"extension twice": {good +
			"users: [{account: a, username: u, password: p, presence_id: 1}, {account: a, username: v, password: p, presence_id: 1}]",
			"users[1].presence_id taken"},
		"misplaced secret":  {good + "users: hunter2-hunter2", "line 2"},
		"misplaced secret ": {good + "users: [hunter2]", "line 2"},
	} {
		err := s.Seed(t.Context(), []byte(c.yaml))
		f := fault.As(err)
		text := f.Message

		for _, field := range f.Fields {
			text += "\n" + field.Field + " " + field.Code + " " + field.Message
		}

		if f.Kind != fault.KindInvalid || !strings.Contains(text, c.want) {
			t.Errorf("%s: want %q, got %v %q", name, c.want, err, text)
		}
		if strings.Contains(text, "hunter2") || strings.Contains(text, "identity.") {
			t.Errorf("%s: it shows too much: %q", name, text)
		}
	}

	if accounts := must(s.ListAccounts(t.Context()))(t); len(accounts) != 0 {
		t.Errorf("something was stored: %+v", accounts)
	}
}

func FuzzDirectoryFile(f *testing.F) {
	f.Add([]byte(directoryYAML))
	f.Add([]byte("accounts: [{id: &a x, name: *a, domain: *a, parent: *a}]"))
	f.Add([]byte("accounts: [{id: a, name: b, domain: b}, {id: b}]"))

	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := parseDirectory(text)
		if err != nil {
			wantKind(t, "parsing", err, fault.KindInvalid)
			return
		}

		plan, err := buildSeed(file, time.Now())
		if err != nil {
			wantKind(t, "planning", err, fault.KindInvalid)
			return
		}

		placed := map[string]bool{"": true}
		for _, a := range plan.accounts {
			if !placed[a.ParentID] || placed[a.ID] {
				t.Fatalf("account %+v is out of order", a)
			}
			placed[a.ID] = true
		}

		for _, u := range plan.users {
			if !placed[u.Account] {
				t.Fatalf("user %+v has no account", u)
			}
		}

		if len(plan.accounts) != len(file.Accounts) || len(plan.users) != len(file.Users) {
			t.Fatal("something was lost")
		}
	})
}
