package aiprovider

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/audit/audittest"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// onEachDatabase runs a test on SQLite and on PostgreSQL.
func onEachDatabase(t *testing.T, test func(t *testing.T, db *sqldb.DB)) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) { test(t, testdb.Open(t, at)) })
}

func noKeys(t testing.TB) *masterkey.Keyring {
	t.Helper()
	k, err := masterkey.Open(masterkey.Settings{File: filepath.Join(t.TempDir(), "master.key")})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func fileKeys(t testing.TB) *masterkey.Keyring {
	t.Helper()
	k := noKeys(t)
	if _, err := k.Create(); err != nil {
		t.Fatal(err)
	}
	return k
}

func openService(t testing.TB, db *sqldb.DB, keys *masterkey.Keyring) *Service {
	t.Helper()
	s, err := New(context.Background(), Settings{}, db, keys, audittest.New(t, db), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const who = "user:u1"

func createProvider(t testing.TB, s *Service, account, body string) Document {
	t.Helper()
	d, err := s.Create(audittest.CallerContext(t, who), account, members(t, body))
	if err != nil {
		t.Fatalf("%v %v", err, codes(err))
	}
	return d
}

func TestAProvidersLife(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		ctx := audittest.CallerContext(t, who)
		s := openService(t, db, fileKeys(t))
		made := createProvider(t, s, "acme", whole)
		if len(made.ID) != 32 ||
			!reflect.DeepEqual(made.WebSocket.Headers, map[string]string{"Authorization": Mask, "X-Tenant": Mask}) {
			t.Errorf("made %#v", made.WebSocket.Headers)
		}

		got, err := s.Find(ctx, "acme", made.ID)
		if err != nil || !reflect.DeepEqual(got, made) {
			t.Errorf("GET answers another than POST: %+v, %v", got, err)
		}

		want := Provider{
			ID: made.ID, AccountID: "acme", Name: "Echo",
			Format:     aiprotocol.Format{Encoding: "pcm16", SampleRate: 24000},
			URL:        "wss://ai.example.com/voice",
			Headers:    map[string]string{"Authorization": "Bearer abc", "X-Tenant": "7"},
			Extensions: true, Fallback: FallbackReturn,
		}
		if p, err := s.Open(ctx, made.ID); err != nil || !reflect.DeepEqual(p, want) {
			t.Errorf("opened: %v, %v", p, err)
		}

		next := `{"id":"` + made.ID + `","name":"Other","media":{"audioFormat":"opus","sampleRate":48000},` +
			`"websocket":{"url":"wss://ai.example.com/other","headers":{"authorization":"********","X-New":"n"}}}`
		put, err := s.Update(ctx, "acme", made.ID, members(t, next))
		if err != nil || put.Extensions != nil || put.Fallback != "" || put.Name != "Other" {
			t.Errorf("replaced: %+v, %v", put, err)
		}

		want = Provider{
			ID: made.ID, AccountID: "acme", Name: "Other",
			Format:   aiprotocol.Format{Encoding: "opus", SampleRate: 48000},
			URL:      "wss://ai.example.com/other",
			Headers:  map[string]string{"authorization": "Bearer abc", "X-New": "n"},
			Fallback: FallbackHangup,
		}
		if p, err := s.Open(ctx, made.ID); err != nil || !reflect.DeepEqual(p, want) {
			t.Errorf("opened: %v %q, %v", p, p.Headers, err)
		}

		second := createProvider(t, s, "acme", whole)
		all, err := s.List(ctx, "acme")
		if err != nil || len(all) != 2 || all[0].ID != made.ID || all[1].ID != second.ID {
			t.Errorf("listed %+v, %v", all, err)
		}

		if err := s.Delete(ctx, "acme", made.ID); err != nil {
			t.Error(err)
		}

		for name, err := range map[string]error{
			"GET": errorOf(s.Find(ctx, "acme", made.ID)), "open": errorOf(s.Open(ctx, made.ID)),
			"PUT": errorOf(s.Update(ctx, "acme", made.ID, members(t, whole))), "DELETE": s.Delete(ctx, "acme", made.ID),
		} {
			if fault.KindOf(err) != fault.KindNotFound {
				t.Errorf("%s of what is gone: %v", name, err)
			}
		}

		target := " " + who + " ai_provider:" + made.ID + " ok"
		wantAudit := []string{"ai_provider.create" + target,
			"ai_provider.create " + who + " ai_provider:" + second.ID + " ok",
			"ai_provider.delete" + target, "ai_provider.update" + target}
		slices.Sort(wantAudit)

		if got := audittest.Entries(t, audittest.New(t, db), "acme", "ai_provider."); !slices.Equal(got, wantAudit) {
			t.Errorf("audit log has %q, want %q", got, wantAudit)
		}
		if n := testutil.ToFloat64(s.metrics.changes.WithLabelValues(actionCreate)); n != 2 {
			t.Errorf("%v changes are counted", n)
		}
	})
}

func errorOf[T any](_ T, err error) error { return err }

func TestAnotherAccountsProviderDoesNotExist(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		ctx := audittest.CallerContext(t, who)

		s := openService(t, db, fileKeys(t))
		made := createProvider(t, s, "acme", whole)
		for name, err := range map[string]error{
			"GET": errorOf(s.Find(ctx, "other", made.ID)), "DELETE": s.Delete(ctx, "other", made.ID),
			"PUT": errorOf(s.Update(ctx, "other", made.ID, members(t, whole))),
		} {
			if fault.KindOf(err) != fault.KindNotFound {
				t.Errorf("%s: %v", name, err)
			}
		}

		if all, err := s.List(ctx, "other"); err != nil || all == nil || len(all) != 0 {
			t.Errorf("listed %v, %v", all, err)
		}
		if _, err := s.Find(ctx, "acme", made.ID); err != nil {
			t.Errorf("it is gone: %v", err)
		}
	})
}

func TestAMaskStandsOnlyForWhatIsStored(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		ctx := audittest.CallerContext(t, who)
		s := openService(t, db, fileKeys(t))
		made := createProvider(t, s, "acme", whole)
		body := strings.Replace(whole, `"X-Tenant":"7"`, `"X-Other":"********"`, 1)
		if _, err := s.Update(ctx, "acme", made.ID,
			members(t, body)); fmt.Sprint(codes(err)) != "[websocket.headers.X-Other masked]" {
			t.Errorf("PUT: %v %v", err, codes(err))
		}
		if _, err := s.Create(ctx, "acme",
			members(t, body)); fmt.Sprint(codes(err)) != "[websocket.headers.X-Other masked]" {
			t.Errorf("POST: %v %v", err, codes(err))
		}
		if p, err := s.Open(ctx, made.ID); err != nil || p.Headers["X-Tenant"] != "7" {
			t.Errorf("a refused PUT has changed something: %v", err)
		}

		// A PUT of GET's response changes nothing.
		answered, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}

		if again, err := s.Update(ctx, "acme", made.ID, members(t, string(answered))); err != nil ||
			!reflect.DeepEqual(again, made) {
			t.Errorf("GET, PUT: %+v, %v", again, err)
		}
		if p, err := s.Open(ctx, made.ID); err != nil || p.Headers["Authorization"] != "Bearer abc" ||
			p.Headers["X-Tenant"] != "7" {
			t.Errorf("the values are lost: %v", err)
		}
	})
}

func TestWithoutAMasterKey(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		ctx := audittest.CallerContext(t, who)
		bare := strings.Replace(whole, `,"headers":{"Authorization":"Bearer abc","X-Tenant":"7"}`, ``, 1)
		s := openService(t, db, noKeys(t))
		made := createProvider(t, s, "acme", bare)
		if p, err := s.Open(ctx, made.ID); err != nil || p.Headers != nil {
			t.Errorf("without headers no key is needed: %v", err)
		}
		if _, err := s.Create(ctx, "acme", members(t, whole)); fault.KindOf(err) != fault.KindUnavailable {
			t.Errorf("headers: %v", err)
		}
		if all, err := s.List(ctx, "acme"); err != nil || len(all) != 1 {
			t.Errorf("a refused POST is stored: %v", err)
		}

		keys := fileKeys(t)
		createProvider(t, openService(t, db, keys), "acme", whole)
		if _, err := New(ctx, Settings{}, db, noKeys(t), audittest.New(t, db), prometheus.NewRegistry()); err == nil ||
			!strings.Contains(err.Error(), "TRUNKLINE_MASTER_KEY") {
			t.Errorf("started without the key of what is sealed: %v", err)
		}
	})
}

func TestHeadersAreSealedForTheirProvider(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		ctx := audittest.CallerContext(t, who)
		s := openService(t, db, fileKeys(t))
		mine, theirs := createProvider(t, s, "acme", whole), createProvider(t, s, "other", whole)
		var sealed string
		if err := db.QueryRowContext(ctx, `SELECT sealed FROM ai_providers WHERE id = $1`,
			theirs.ID).Scan(&sealed); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(sealed, "Bearer") {
			t.Error("it is not sealed")
		}
		if _, err := db.ExecContext(ctx, `UPDATE ai_providers SET sealed = $1 WHERE id = $2`, sealed,
			mine.ID); err != nil {
			t.Fatal(err)
		}

		if _, err := s.Open(ctx, mine.ID); fault.KindOf(err) != fault.KindInternal {
			t.Errorf("headers moved to another provider open: %v", err)
		}
	})
}

func TestRotationSealsEverythingAnew(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		ctx := audittest.CallerContext(t, who)
		keys := fileKeys(t)
		s := openService(t, db, keys)
		var ids []string

		for i := range 105 {
			d := createProvider(t, s, "acme", strings.Replace(whole, "Bearer abc", fmt.Sprint("Bearer ", i), 1))
			ids = append(ids, d.ID)
		}

		createProvider(t, s, "acme", strings.Replace(whole, `{"Authorization":"Bearer abc","X-Tenant":"7"}`, `{}`, 1))
		done, err := masterkey.Rotate(ctx, keys, []masterkey.SecretStore{s.Secrets()}, func(int, int) {})
		if err != nil {
			t.Fatal(err)
		}

		if inUse, err := s.Secrets().MasterKeys(ctx); err != nil || len(inUse) != 1 || inUse[0] != done.KeyID {
			t.Errorf("in use: %v, %v", inUse, err)
		}

		for i, id := range ids {
			if p, err := s.Open(ctx, id); err != nil || p.Headers["Authorization"] != fmt.Sprint("Bearer ", i) {
				t.Fatalf("provider %d: %v", i, err)
			}
		}
	})
}

func TestConcurrentChangesAreWholeOnes(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		keys := fileKeys(t)
		nodes := []*Service{openService(t, db, keys), openService(t, db, keys)}
		made := createProvider(t, nodes[0], "acme", whole)
		var wg sync.WaitGroup

		for w := range 4 {
			wg.Go(func() {
				for i := range 5 {
					body := strings.Replace(whole, `"Echo"`, fmt.Sprintf(`"%d.%d"`, w, i), 1)
					body = strings.Replace(body, `"Bearer abc"`, `"********"`, 1)
					body = strings.Replace(body, `"7"`, fmt.Sprintf(`"%d.%d"`, w, i), 1)
					if _, err := nodes[w%2].Update(audittest.CallerContext(t, who), "acme", made.ID,
						members(t, body)); err != nil {
						t.Error(err)
					}
				}
			})
		}

		wg.Wait()
		p, err := nodes[1].Open(t.Context(), made.ID)
		if err != nil || p.Headers["Authorization"] != "Bearer abc" || p.Headers["X-Tenant"] != p.Name {
			t.Errorf("%s with %q, %v", p.Name, p.Headers["X-Tenant"], err)
		}
	})
}

func TestAnAccountHasOnlySoMany(t *testing.T) {
	db, err := sqldb.Open(t.Context(), sqldb.Config{Path: filepath.Join(t.TempDir(), "t.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	s := openService(t, db, noKeys(t))
	_, err = db.ExecContext(t.Context(), `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
		INSERT INTO ai_providers (id, account_id, name, audio_format, url, sealed, master_key_id, fallback, created_at, updated_at)
		SELECT 'p' || i, 'acme', 'n', 'opus', 'wss://h', '', '', '', $2, $2 FROM n`, maxProviders,
		time.Now().UnixMilli())
	if err != nil {
		t.Fatal(err)
	}

	bare := strings.Replace(whole, `,"headers":{"Authorization":"Bearer abc","X-Tenant":"7"}`, ``, 1)
	if _, err := s.Create(audittest.CallerContext(t, who), "acme",
		members(t, bare)); fault.KindOf(err) != fault.KindConflict {
		t.Errorf("one more: %v", err)
	}

	createProvider(t, s, "other", bare)
}

func TestNothingShowsASecret(t *testing.T) {
	p := Provider{ID: "1", Headers: map[string]string{"Authorization": "sesame"}}
	d := Document{ID: "1", WebSocket: WebSocket{Headers: p.Headers}}
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", p, p, p, p), fmt.Sprintf("%v %+v %#v %s", d, &d, d, d)} {
		if strings.Contains(text, "sesame") {
			t.Error(text)
		}
	}
}

func TestWhenWSIsAccepted(t *testing.T) {
	for network, want := range map[string]bool{
		"127.0.0.0/8": true, "127.0.0.1/32": true, "127.0.0.9/32": true, "::1/128": true, "0.0.0.0/0": true,
		"::/0":       true,
		"10.0.0.0/8": false, "fd00::/8": false, "128.0.0.0/8": false,
	} {
		if got := (Settings{AllowNetworks: []netip.Prefix{netip.MustParsePrefix(network)}}).allowsPlain(); got != want {
			t.Errorf("%s: %v", network, got)
		}
	}

	if (Settings{}).allowsPlain() ||
		setting.Validate("ai_provider", Settings{AllowNetworks: []netip.Prefix{{}}}) == nil {
		t.Error("ws is never accepted by default, and no network is refused")
	}
}

func TestTheOldAuditTableIsTakenOver(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		first, err := migrations.ReadFile("migrations/0001_aiprovider.sql")
		if err != nil {
			t.Fatal(err)
		}

		if err := db.Migrate(t.Context(), "aiprovider",
			fstest.MapFS{"migrations/0001_aiprovider.sql": {Data: first}}); err != nil {
			t.Fatal(err)
		}

		if _, err := db.ExecContext(t.Context(),
			`INSERT INTO ai_provider_audit (at, account_id, who, action, provider_id)
			VALUES (1, 'acme', 'user:u1', 'create', 'p'), (2, 'acme', 'user:u1', 'replace', 'p'), (3, 'acme', 'user:u2', 'delete', 'p')`); err != nil {
			t.Fatal(err)
		}

		openService(t, db, fileKeys(t))
		want := []string{"ai_provider.create user:u1 ai_provider:p ok", "ai_provider.delete user:u2 ai_provider:p ok",
			"ai_provider.update user:u1 ai_provider:p ok"}
		if got := audittest.Entries(t, audittest.New(t, db), "acme", ""); !slices.Equal(got, want) {
			t.Errorf("audit log has %q, want %q", got, want)
		}
	})
}

func TestStoredHeadersAreNotSentToAnotherOrigin(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		ctx := audittest.CallerContext(t, who)
		s := openService(t, db, fileKeys(t))
		masked := strings.NewReplacer("Bearer abc", Mask, `"7"`, `"`+Mask+`"`).Replace(whole)

		for _, moved := range []string{
			"wss://thief.example.com/voice", "wss://ai.example.com:8443/voice", "wss://ai.example.com./voice",
			"wss://ai.example.com.thief.example/voice", "wss://ai.example.co/voice",
		} {
			made := createProvider(t, s, "acme", whole)
			_, err := s.Update(ctx, "acme", made.ID,
				members(t, strings.Replace(masked, "wss://ai.example.com/voice", moved, 1)))
			if got := fmt.Sprint(
				codes(err)); got != "[websocket.headers.Authorization masked websocket.headers.X-Tenant masked]" {
				t.Errorf("%s: %v %s", moved, err, got)
			}
			if p, err := s.Open(ctx, made.ID); err != nil || p.URL != "wss://ai.example.com/voice" ||
				p.Headers["Authorization"] != "Bearer abc" {
				t.Errorf("%s: a refused PUT changed the provider: %v", moved, err)
			}

			fresh := strings.Replace(whole, "wss://ai.example.com/voice", moved, 1)
			if _, err := s.Update(ctx, "acme", made.ID, members(t, fresh)); err != nil {
				t.Errorf("%s with new values: %v", moved, err)
			}
		}

		for _, same := range []string{"wss://ai.example.com/other?x=1", "wss://AI.example.com:443/voice"} {
			made := createProvider(t, s, "acme", whole)
			if _, err := s.Update(ctx, "acme", made.ID,
				members(t, strings.Replace(masked, "wss://ai.example.com/voice", same, 1))); err != nil {
				t.Errorf("%s: %v %v", same, err, codes(err))
			}
			if p, err := s.Open(ctx, made.ID); err != nil || p.Headers["Authorization"] != "Bearer abc" {
				t.Errorf("%s: the values are lost: %v", same, err)
			}
		}
	})
}

func TestOrigins(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"wss://h/x", "wss://h:443/y", true},
		{"ws://h/x", "ws://h:80", true},
		{"ws://h:443", "wss://h:443", false},
		{"wss://[::1]:9/x", "wss://[::1]:9/y", true},
		{"wss://[::1]:9/x", "wss://[::1]:10/x", false},
		{"wss://h/x", "::", false},
	} {
		if got := sameOrigin(c.a, c.b); got != c.same {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}

func TestASecretIsSealedMaskedAndStaysWithItsHost(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		ctx := audittest.CallerContext(t, who)
		s := openService(t, db, fileKeys(t))
		const body = `{"name":"Bot","media":{"audioFormat":"g711_ulaw","sampleRate":8000},"websocket":{"url":"wss://bot.example.com/media"},` +
			`"protocol":"twilio","secret":"auth-token-1","session":{"bot":"sales"}}`
		made := createProvider(t, s, "acme", body)
		shown, err := s.Find(ctx, "acme", made.ID)
		if err != nil || shown.Secret != Mask || string(shown.Session) != `{"bot":"sales"}` ||
			shown.Protocol != "twilio" || shown.WebSocket.Headers != nil {
			t.Errorf("shown: %q %s %q %v, %v", shown.Secret, shown.Session, shown.Protocol, shown.WebSocket.Headers,
				err)
		}

		var stored string
		if err := db.QueryRowContext(ctx, `SELECT sealed FROM ai_providers`).Scan(&stored); err != nil ||
			strings.Contains(stored, "auth-token") {
			t.Errorf("stored: %q, %v", stored, err)
		}

		masked := strings.Replace(body, "auth-token-1", Mask, 1)
		kept := strings.Replace(masked, `/media"`, `/other","headers":{"X-A":"1"}`, 1)
		if _, err := s.Update(ctx, "acme", made.ID, members(t, kept)); err != nil {
			t.Fatal(err)
		}
		if p, err := s.Open(ctx, made.ID); err != nil || p.Secret != "auth-token-1" ||
			!reflect.DeepEqual(p.Headers, map[string]string{"X-A": "1"}) {
			t.Errorf("opened after a PUT with the mask: %v %q, %v", p.Secret, p.Headers, err)
		}

		moved := strings.Replace(masked, "bot.example.com", "evil.example.com", 1)
		if _, err := s.Update(ctx, "acme", made.ID, members(t, moved)); fmt.Sprint(codes(err)) != "[secret masked]" {
			t.Errorf("a PUT that moves the secret: %v", codes(err))
		}
		if _, err := s.Create(ctx, "acme", members(t, masked)); fmt.Sprint(codes(err)) != "[secret masked]" {
			t.Errorf("a POST with the mask: %v", codes(err))
		}
		if _, err := s.Update(ctx, "acme", made.ID,
			members(t, strings.Replace(body, `"secret":"auth-token-1",`, "", 1))); err != nil {
			t.Fatal(err)
		}
		if p, err := s.Open(ctx, made.ID); err != nil || p.Secret != "" {
			t.Errorf("a PUT without the secret: %q, %v", p.Secret, err)
		}
	})
}

// The rules are the queues of the providers that listen, of all accounts, and follow each change.
func TestRulesAreTheQueuesOfListeners(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		ctx := audittest.CallerContext(t, who)
		s := openService(t, db, fileKeys(t))
		with := func(more string) string {
			return strings.Replace(whole, `"extensions":true`, `"extensions":true,`+more, 1)
		}
		one := createProvider(t, s, "acme", with(`"mode":"listen","queues":["sales","support"]`))
		other := createProvider(t, s, "demo", with(`"mode":"listen","queues":["pool"]`))
		createProvider(t, s, "demo", with(`"mode":"listen","queues":[]`))
		createProvider(t, s, "demo", with(`"mode":"listen"`))
		createProvider(t, s, "demo", whole)
		want := []QueueRule{{one.ID, "acme", []string{"sales", "support"}}, {other.ID, "demo", []string{"pool"}}}
		slices.SortFunc(want, func(a, b QueueRule) int { return strings.Compare(a.ProviderID, b.ProviderID) })

		if rules, err := s.ListRules(ctx); err != nil || !reflect.DeepEqual(rules, want) {
			t.Errorf("rules %v, %v, want %v", rules, err, want)
		}
		if found, err := s.Find(ctx, "acme", one.ID); err != nil || !slices.Equal(found.Queues, one.Queues) {
			t.Errorf("found %q, %v", found.Queues, err)
		}

		if _, err := s.Update(ctx, "acme", one.ID, members(t, whole)); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(ctx, "demo", other.ID); err != nil {
			t.Fatal(err)
		}
		if rules, err := s.ListRules(ctx); err != nil || len(rules) != 0 {
			t.Errorf("rules of nobody: %v, %v", rules, err)
		}
	})
}
