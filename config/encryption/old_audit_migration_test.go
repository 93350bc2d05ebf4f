package encryption

import (
	"slices"
	"testing"
	"testing/fstest"

	"trunkline/audit/audittest"
	"trunkline/internal/sqldb"
)

func TestTheOldAuditTableIsTakenOver(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *sqldb.DB) {
		first, err := migrations.ReadFile("migrations/0001_encryption.sql")
		if err != nil {
			t.Fatal(err)
		}

		if err := db.Migrate(t.Context(), "encryption",
			fstest.MapFS{"migrations/0001_encryption.sql": {Data: first}}); err != nil {
			t.Fatal(err)
		}

		if _, err := db.ExecContext(t.Context(),
			`INSERT INTO encryption_audit (at, account_id, who, action, key_version, revision)
			VALUES (1, 'acme', 'user:u1', 'change', 1, 1), (2, 'acme', 'user:u2', 'read', 1, 1)`); err != nil {
			t.Fatal(err)
		}

		openService(t, db, fileKeys(t))
		want := []string{"encryption.read user:u2 key_version:1 ok", "encryption.update user:u1 key_version:1 ok"}
		if got := audittest.Entries(t, audittest.New(t, db), "acme", ""); !slices.Equal(got, want) {
			t.Errorf("audit log has %q, want %q", got, want)
		}
	})
}
