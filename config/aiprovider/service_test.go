package aiprovider

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/audit/audittest"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
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
