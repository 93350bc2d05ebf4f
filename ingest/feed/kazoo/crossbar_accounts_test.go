package kazoo

import (
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/event"
	"trunkline/event/state"
	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/masterkey"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
)

// accountTree are the documents of the accounts: root above acme above sub.
func accountTree() map[string]any {
	return map[string]any{
		"/v2/accounts/" +
			rootID: map[string]any{"id": rootID, "name": "Root", "realm": "root.example.com", "is_reseller": true},
		"/v2/accounts/" + rootID + "/descendants": []any{
			map[string]any{"id": subID, "name": "Sub", "realm": "sub.example.com", "tree": []string{rootID, acmeID}},
			map[string]any{"id": acmeID, "name": "Acme", "realm": "acme.example.com", "tree": []string{rootID}},
		},
	}
}

// gregorian are seconds of Kazoo's clock.
const gregorian = 63962388900

func withCrossbar(t *testing.T, address string, crossbar *crossbarServer) feed.Config {
	t.Helper()
	cfg := config(t, address)
	cfg.CrossbarURL, cfg.CrossbarAPIKey = crossbar.URL, setting.Secret(apiKey)
	return cfg
}

func TestASnapshotIsWhatCrossbarKnows(t *testing.T) {
	documents := accountTree()
	const acme = "/v2/accounts/" + acmeID
	for _, id := range []string{rootID, subID} { // without ACDc and without calls
		documents["/v2/accounts/"+id+"/channels"] = []any{}
		documents["/v2/accounts/"+id+"/registrations"] = []any{}
	}

	maps.Copy(documents, map[string]any{
		acme + "/agents": []any{
			map[string]any{"id": "a1", "first_name": "Ann", "last_name": "Lee", "queues": []string{"q1", "q2"}},
			map[string]any{"id": "a2", "first_name": "Bob", "queues": []string{}},
			map[string]any{"id": "a3", "queues": []string{"q1"}},
			map[string]any{"id": "a4", "queues": []string{"q1"}},
		},
		acme + "/agents/status": map[string]any{
			"a1": map[string]any{
				fmt.Sprint(gregorian - 100): map[string]any{"agent_id": "a1", "status": "ready",
					"timestamp": gregorian - 100},
				fmt.Sprint(gregorian): map[string]any{"agent_id": "a1", "status": "connected", "timestamp": gregorian,
					"call_id": "c1", "caller_id_number": "+15551230001", "queue_id": "q1"},
			},
			"a2": map[string]any{fmt.Sprint(gregorian): map[string]any{"agent_id": "a2", "status": "paused",
				"timestamp": gregorian}},
		},
		acme + "/agents/a3/status": "ready",   // since the day before
		acme + "/agents/a4/status": "unknown", // never logged in
		acme + "/queues/stats": map[string]any{"current_timestamp": gregorian, "stats": []any{
			map[string]any{"call_id": "c1", "queue_id": "q1", "status": "handled", "agent_id": "a1",
				"caller_id_number": "+15551230001", "entered_timestamp": gregorian - 30,
				"handled_timestamp": gregorian - 10},
			map[string]any{"call_id": "c2", "queue_id": "q1", "status": "waiting", "caller_id_number": "+15551230002",
				"entered_timestamp": gregorian - 5},
			map[string]any{"call_id": "c0", "queue_id": "q1", "status": "processed",
				"entered_timestamp": gregorian - 500},
		}},
		acme + "/channels": []any{
			map[string]any{"uuid": "c1", "answered": true, "direction": "inbound", "destination": "+15559990000",
				"interaction_id": "i1", "timestamp": gregorian - 31},
			map[string]any{"uuid": "c2", "answered": true, "direction": "inbound"},
			map[string]any{"uuid": "c3", "answered": true, "is_onhold": true, "direction": "outbound"},
			map[string]any{"uuid": "c4", "answered": true, "direction": "outbound"},
			map[string]any{"uuid": "c5", "answered": false, "direction": "outbound"},
		},
		acme + "/registrations": []any{
			map[string]any{"username": "u1", "realm": "acme.example.com", "contact": "sip:u1@192.0.2.1", "expires": 60},
			map[string]any{"username": "u1", "realm": "acme.example.com", "contact": "sip:u1@192.0.2.2", "expires": 60},
		},
	})
	crossbar := startCrossbar(t, documents)
	address := testservice.RabbitMQ(t)
	dial(t, address)

	s := openSession(t,
		newTest(t, withCrossbar(t, address, crossbar), names{"acme.example.com": "acme", "sub.example.com": "sub"},
			nil))
	snapshot := func() feed.Snapshot {
		t.Helper()
		got, err := s.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}

	got := snapshot()
	if !slices.Equal(got.Kinds, []state.Kind{state.Agent, state.Call, state.Device}) || len(got.Notes) != 0 {
		t.Errorf("kinds %v, notes %q", got.Kinds, got.Notes)
	}

	const ms = (gregorian - 62167219200) * 1000
	want := []feed.Object{
		{Account: "acme", Kind: state.Agent, ID: "a1", Queues: []string{"q1", "q2"},
			Facts: event.Facts{AgentID: "a1", AgentName: "Ann Lee",
				State: event.Talking, CallID: "c1", Caller: "+15551230001", QueueID: "q1", TimestampMS: ms}},
		{Account: "acme", Kind: state.Agent, ID: "a2", Queues: []string{},
			Facts: event.Facts{AgentID: "a2", AgentName: "Bob", State: event.Break, TimestampMS: ms}},
		{Account: "acme", Kind: state.Agent, ID: "a3", Queues: []string{"q1"},
			Facts: event.Facts{AgentID: "a3", State: event.Available}},
		{Account: "acme", Kind: state.Agent, ID: "a4", Facts: event.Facts{AgentID: "a4", State: event.Offline}},
		{Account: "acme", Kind: state.Call, ID: "c1", Leg: true,
			Facts: event.Facts{CallID: "c1", InteractionID: "i1", QueueID: "q1", AgentID: "a1",
				Caller: "+15551230001", Callee: "+15559990000", State: event.Talking, TimestampMS: ms - 10_000}},
		{Account: "acme", Kind: state.Call, ID: "c2", Leg: true,
			Facts: event.Facts{CallID: "c2", QueueID: "q1", Caller: "+15551230002", State: event.Waiting,
				TimestampMS: ms - 5_000}},
		{Account: "acme", Kind: state.Call, ID: "c3", Leg: true, Facts: event.Facts{CallID: "c3", State: event.Held}},
		{Account: "acme", Kind: state.Call, ID: "c4", Leg: true,
			Facts: event.Facts{CallID: "c4", State: event.Talking}},
		{Account: "acme", Kind: state.Call, ID: "c5", Leg: true, Facts: event.Facts{CallID: "c5"}},
		{Account: "acme", Kind: state.Device, ID: "u1@acme.example.com",
			Facts: event.Facts{AgentID: "u1@acme.example.com", State: event.Registered}},
	}
	slices.SortFunc(got.Objects, func(a, b feed.Object) int {
		return strings.Compare(string(a.Kind)+a.ID, string(b.Kind)+b.ID)
	})

	if a, b := fmt.Sprintf("%+v", got.Objects), fmt.Sprintf("%+v", want); a != b {
		t.Errorf("got  %s\nwant %s", a, b)
	}

	crossbar.mu.Lock()
	crossbar.expired = true
	crossbar.mu.Unlock()

	snapshot() // with a new token
	if crossbar.logins != 2 {
		t.Errorf("%d logins", crossbar.logins)
	}

	crossbar.set(acme+"/channels", nil)
	crossbar.set(acme+"/registrations", []any{})
	if got := snapshot(); !slices.Equal(got.Kinds, []state.Kind{state.Agent}) || len(got.Notes) != 2 {
		t.Errorf("kinds %v, notes %q: calls were not told, and no registrations may mean that nobody answered",
			got.Kinds, got.Notes)
	}

	crossbar.Close()
	if got, err := s.Snapshot(t.Context()); err == nil {
		t.Errorf("without Crossbar: %+v", got)
	}
}

func TestWithoutCrossbarASnapshotIsEmpty(t *testing.T) {
	address := testservice.RabbitMQ(t)
	dial(t, address)
	crossbar := startCrossbar(t, accountTree())
	wrong := withCrossbar(t, address, crossbar)
	wrong.CrossbarAPIKey = "wrong"
	unset := config(t, address)
	unset.Name += "2"

	for _, cfg := range []feed.Config{wrong, unset} {
		s := openSession(t, newTest(t, cfg, nil, nil))
		if got, err := s.Snapshot(t.Context()); err != nil || len(got.Kinds) != 0 || len(got.Notes) != 1 ||
			!strings.Contains(got.Notes[0], "crossbar") {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

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
	p := newTest(t, cfg, names{}, directory)
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
	s := openSession(t, newTest(t, cfg, names{"acme.example.com": "ours"}, directory))

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
	p := newTest(t, cfg, names{}, directory)
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
	newTest(t, cfg, names{}, directory).syncAccounts(t.Context())

	if all := directory.Tree().Accounts(); len(all) != 1 || all[0].Name != "Bank" ||
		all[0].Domain != "bank.example.com" {
		t.Errorf("%+v", all)
	}
}
