package aiprovider

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit/audittest"
	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

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

func TestNothingShowsASecret(t *testing.T) {
	p := Provider{ID: "1", Headers: map[string]string{"Authorization": "sesame"}}
	d := Document{ID: "1", WebSocket: WebSocket{Headers: p.Headers}}
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", p, p, p, p), fmt.Sprintf("%v %+v %#v %s", d, &d, d, d)} {
		if strings.Contains(text, "sesame") {
			t.Error(text)
		}
	}
}
