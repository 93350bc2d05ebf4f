package aiprovider

import (
	"slices"
	"testing"
	"testing/fstest"

	"trunkline/audit/audittest"
	"trunkline/internal/sqldb"
)

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
