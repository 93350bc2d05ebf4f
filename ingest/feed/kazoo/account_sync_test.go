package kazoo

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/identity"
	"trunkline/internal/masterkey"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
)

// newDirectory returns a directory without accounts, in SQLite.
func newDirectory(t *testing.T) *identity.Directory {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{Path: filepath.Join(t.TempDir(), "test.db")})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})

	log := slog.New(slog.DiscardHandler)
	ring, err := masterkey.Open(masterkey.Settings{Value: setting.Secret(strings.Repeat("0f1e2d3c", 8))})
	if err != nil {
		t.Fatal(err)
	}

	audited, err := audit.New(t.Context(), audit.DefaultSettings(),
		audit.Deps{DB: db, Metrics: prometheus.NewRegistry(), Log: log})
	if err != nil {
		t.Fatal(err)
	}

	cfg := identity.Config{Settings: identity.DefaultSettings(),
		Argon2: identity.Argon2{MemoryKiB: 8, Passes: 1, Lanes: 1}}
	service, err := identity.New(t.Context(), cfg, db, ring, identity.NewMemoryLimiter(), audited,
		prometheus.NewRegistry(), log)
	if err != nil {
		t.Fatal(err)
	}

	return service.Directory
}

func TestAccountsFollowCrossbar(t *testing.T) {
	documents := accountTree()
	crossbar := startCrossbar(t, documents)
	address := testservice.RabbitMQ(t)
	kazoo := dial(t, address)
	directory := newDirectory(t)
	cfg := withCrossbar(t, address, crossbar)
	cfg.SyncAccounts = true
	p := newTestPlatform(t, cfg, accountsByName{}, directory)
	s := openSession(t, p)

	show := func() (all []string) {
		for _, a := range directory.Tree().Accounts() {
			all = append(all,
				fmt.Sprint(a.ID[max(0, len(a.ID)-1):], " ", a.Name, " ", a.Domain, " ",
					len(directory.Tree().Path(a.ID))))
		}
		return all
	}
	if got := show(); !slices.Equal(got,
		[]string{"1 Root root.example.com 1", "2 Acme acme.example.com 2", "3 Sub sub.example.com 3"}) {
		t.Errorf("created %q", got)
	}

	// Renamed, another realm, moved; and two of one name.
	const newID = "00000000000000000000000000000004"
	crossbar.set("/v2/accounts/"+rootID+"/descendants", []any{
		map[string]any{"id": subID, "name": "Acme", "realm": "new.example.com", "tree": []string{rootID}},
		map[string]any{"id": acmeID, "name": "Acme", "realm": "acme.example.com", "tree": []string{rootID}},
		map[string]any{"id": newID, "name": "New", "realm": "four.example.com", "tree": []string{rootID, subID}},
	})
	p.syncing.Lock()
	p.syncedAt = p.syncedAt.Add(-minSyncInterval)
	p.syncing.Unlock()

	// A message of an unknown account causes a request to Crossbar at once.
	kazoo.publish(t, "kapps", "acdc_stats.status.new.a1", status(newID, "a1", "ready"))
	if e := read(t, s, 1)[0]; e.Account != newID {
		t.Errorf("account %q of a new one", e.Account)
	}

	want := []string{"1 Root root.example.com 1", "2 Acme acme.example.com 2", "3 Acme (00000000) new.example.com 2",
		"4 New four.example.com 3"}
	if got := show(); !slices.Equal(got, want) {
		t.Errorf("changed %q, want %q", got, want)
	}

	revision := directory.Changed()
	p.syncAccounts(t.Context())
	select {
	case <-revision:
		t.Error("a sync without differences changes accounts")
	default:
	}

	// Removed: it stays, and is reported.
	crossbar.set("/v2/accounts/"+rootID+"/descendants", []any{
		map[string]any{"id": acmeID, "name": "Acme", "realm": "acme.example.com", "tree": []string{rootID}},
	})
	p.syncAccounts(t.Context())

	if got := show(); len(got) != 4 || len(p.reportedDifferences) != 2 || p.reportedDifferences[newID] == "" {
		t.Errorf("after removal %q, reported %v", got, p.reportedDifferences)
	}

	crossbar.Close()
	p.syncAccounts(t.Context())
	if got := show(); len(got) != 4 {
		t.Errorf("without Crossbar %q", got)
	}
}

func TestAnAccountWithTheRealmStandsForKazoos(t *testing.T) {
	crossbar := startCrossbar(t, accountTree())
	address := testservice.RabbitMQ(t)
	kazoo := dial(t, address)
	directory := newDirectory(t)
	if _, err := directory.CreateAccount(t.Context(),
		identity.NewAccount{ID: "ours", Name: "Ours", Domain: "acme.example.com"}); err != nil {
		t.Fatal(err)
	}

	cfg := withCrossbar(t, address, crossbar)
	cfg.SyncAccounts = true
	s := openSession(t, newTestPlatform(t, cfg, accountsByName{"acme.example.com": "ours"}, directory))

	if path := directory.Tree().Path(subID); !slices.Equal(path, []string{subID, "ours"}) {
		t.Errorf("path %v", path)
	}

	kazoo.publish(t, "kapps", "acdc_stats.status.acme.a1", status(acmeID, "a1", "ready"))
	if e := read(t, s, 1)[0]; e.Account != "ours" || !slices.Equal(e.Names, []string{acmeID, "acme.example.com"}) {
		t.Errorf("account %q, names %v", e.Account, e.Names)
	}
}

// Crossbar decides about the account of the API key and those below it, and about no others.
func TestCrossbarChangesNoAccountOutside(t *testing.T) {
	const (
		victim = "0000000000000000000000000000abcd" // with an id like those of Kazoo
		fresh  = "00000000000000000000000000000004"
	)
	documents := accountTree()
	documents["/v2/accounts/"+rootID+"/descendants"] = []any{
		map[string]any{"id": acmeID, "name": "Acme", "realm": "acme.example.com", "tree": []string{rootID}},
		map[string]any{"id": victim, "name": "Stolen", "realm": "stolen.example.com", "tree": []string{rootID}},
		map[string]any{"id": "bank", "name": "Stolen", "realm": "stolen2.example.com", "tree": []string{rootID}},
		map[string]any{"id": "made-up", "name": "Made up", "realm": "made-up.example.com", "tree": []string{rootID}},
		map[string]any{"id": fresh, "name": "New", "realm": "new.example.com", "tree": []string{rootID, victim}},
	}
	crossbar := startCrossbar(t, documents)
	directory := newDirectory(t)

	for _, a := range []identity.NewAccount{
		{ID: victim, Name: "Victim", Domain: "victim.example.com"},
		{ID: "bank", Name: "Bank", Domain: "bank.example.com"},
	} {
		if _, err := directory.CreateAccount(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}

	cfg := withCrossbar(t, "amqp://127.0.0.1:1/", crossbar)
	cfg.SyncAccounts = true
	p := newTestPlatform(t, cfg, accountsByName{}, directory)
	p.syncAccounts(t.Context())
	var got []string

	for _, a := range directory.Tree().Accounts() {
		got = append(got, fmt.Sprint(a.Name, " ", a.Domain, " ", len(directory.Tree().Path(a.ID))))
	}

	want := []string{"Root root.example.com 1", "Acme acme.example.com 2", "Victim victim.example.com 1",
		"Bank bank.example.com 1"}
	if !slices.Equal(got, want) {
		t.Errorf("accounts %q, want %q", got, want)
	}

	for _, id := range []string{victim, "bank", "made-up", fresh} {
		if p.reportedDifferences[id] == "" {
			t.Errorf("%s is not reported", id)
		}
	}
}

// An API key's account that Crossbar names is no account of another platform.
func TestAnAccountOfTheKeyThatIsNotKazoosIsRefused(t *testing.T) {
	documents := accountTree()
	documents["/v2/accounts/bank"] = map[string]any{"id": "bank", "name": "Stolen", "realm": "stolen.example.com"}
	documents["/v2/accounts/bank/descendants"] = []any{
		map[string]any{"id": acmeID, "name": "Acme", "realm": "acme.example.com", "tree": []string{"bank"}},
	}
	crossbar := startCrossbar(t, documents)
	crossbar.root = "bank"
	directory := newDirectory(t)
	if _, err := directory.CreateAccount(t.Context(),
		identity.NewAccount{ID: "bank", Name: "Bank", Domain: "bank.example.com"}); err != nil {
		t.Fatal(err)
	}

	cfg := withCrossbar(t, "amqp://127.0.0.1:1/", crossbar)
	cfg.SyncAccounts = true
	newTestPlatform(t, cfg, accountsByName{}, directory).syncAccounts(t.Context())

	if all := directory.Tree().Accounts(); len(all) != 1 || all[0].Name != "Bank" ||
		all[0].Domain != "bank.example.com" {
		t.Errorf("%+v", all)
	}
}
