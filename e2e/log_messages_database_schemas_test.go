package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
)

// downgradeSchema downgrades a database to the first schema of identity.
func downgradeSchema(t *testing.T, db *sqldb.DB) {
	t.Helper()
	for _, statement := range []string{
		`DROP TABLE identity_address_keys`, `DROP TABLE identity_filters`, `DROP TABLE identity_deleted_accounts`,
		`DROP TABLE identity_otp`, `DROP TABLE identity_oidc_subjects`, `DROP TABLE identity_oidc_users`,
		`ALTER TABLE identity_refresh_tokens DROP COLUMN ends_at`, `DROP INDEX identity_refresh_tokens_family_hash`,
		`ALTER TABLE identity_refresh_tokens DROP COLUMN family_hash`, `DROP TABLE identity_recovery_codes`,
		`ALTER TABLE identity_accounts DROP COLUMN admin_otp`, `ALTER TABLE identity_accounts DROP COLUMN named_by`,
		`ALTER TABLE identity_accounts DROP COLUMN time_zone`,
		`ALTER TABLE identity_api_keys DROP COLUMN scopes`, `ALTER TABLE identity_api_keys DROP COLUMN expires_at`,
		`ALTER TABLE identity_users DROP COLUMN limited_role`, `ALTER TABLE identity_users DROP COLUMN queue_ids`,
		`ALTER TABLE identity_users DROP COLUMN agent_ids`,
		`ALTER TABLE identity_api_keys DROP COLUMN role`, `ALTER TABLE identity_api_keys DROP COLUMN queue_ids`,
		`ALTER TABLE identity_api_keys DROP COLUMN agent_ids`,
		`DROP TABLE identity_devices`, `DROP TABLE identity_device_passwords`, `DROP TABLE identity_known_addresses`,
		`DELETE FROM identity_signing_keys`, // sealed: unknown to the older schema
		`ALTER TABLE identity_signing_keys DROP COLUMN master_key_id`,
		`ALTER TABLE identity_signing_keys DROP COLUMN public_key`,
		`DROP INDEX identity_users_username`, `DROP INDEX identity_users_revision`,
		`ALTER TABLE identity_users DROP COLUMN revision`,
		`ALTER TABLE identity_users DROP COLUMN generation`, `ALTER TABLE identity_users DROP COLUMN kept_family`,
		`DELETE FROM identity_schema WHERE version > 1`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// schemaVersion returns the version of identity's schema.
func schemaVersion(t *testing.T, db *sqldb.DB) (v int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), `SELECT MAX(version) FROM identity_schema`).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// withNewerSchema migrates the database as a newer program would, to one that is used only by programs
// which know the schema version minVersion, runs test, and undoes the migration.
func withNewerSchema(t *testing.T, db *sqldb.DB, minVersion int, test func()) {
	t.Helper()
	execute := func(statements ...string) {
		for _, statement := range statements {
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}

	execute(`INSERT INTO identity_schema (version, name, applied_at) VALUES (99, 'later', 1)`,
		fmt.Sprintf(`INSERT INTO identity_schema_needs (version, needs) VALUES (99, %d)`, minVersion),
		`ALTER TABLE identity_users ADD COLUMN later TEXT NOT NULL DEFAULT ''`, `CREATE TABLE identity_later (id TEXT)`)
	test()

	if got := schemaVersion(t, db); got != 99 {
		t.Errorf("the older node changed the schema to version %d", got)
	}

	execute(`DELETE FROM identity_schema WHERE version = 99`, `DELETE FROM identity_schema_needs WHERE version = 99`,
		`ALTER TABLE identity_users DROP COLUMN later`, `DROP TABLE identity_later`)
}

func (n *node) stop(t *testing.T) {
	t.Helper()
	n.signal(t, syscall.SIGTERM)
	if code, ok := n.awaitExit(patience); !ok || code != 0 {
		t.Fatalf("%s: exit %d, %v", n.name, code, ok)
	}
}

func testDatabaseSchemasSQLite(t *testing.T, messages *messageTable) {
	n := newNode(t, "sqlite", map[string]string{"TRUNKLINE_DEMO_PASSWORD": password})
	n.start(t)
	n.stop(t)
	db := openDatabase(t, sqldb.Config{Path: filepath.Join(n.dir, "trunkline.db")})
	latest := schemaVersion(t, db)
	const refusal = "the database has schema version" // the part of the message

	withNewerSchema(t, db, latest, func() { // the program is of the version before, and starts again
		n.start(t)
		n.awaitMessage(t, messages.row(t, "database schema of a newer version"))
		n.login(t, apiPaths, user("alice"))
		n.stop(t)
	})

	withNewerSchema(t, db, latest+1, func() {
		messages.mustExit(t, refusal, n.settings)
		if done := run(t, n.settings, "", "account", "list"); done.code != 2 ||
			messages.row(t, refusal).countMatches(done.stderr) != 1 {
			t.Errorf("a command: exit %d after %s", done.code, done.stderr)
		}
	})

	downgradeSchema(t, db)
	n.start(t)
	n.awaitMessage(t, messages.row(t, "database schema migrated"))
	n.login(t, apiPaths, user("alice"))

	if got := schemaVersion(t, db); got != latest {
		t.Errorf("it has version %d", got)
	}
}

// testDatabaseSchemasPostgres starts several nodes at once on an old schema and kills one of them during
// the migration.
func testDatabaseSchemasPostgres(t *testing.T, messages *messageTable) {
	url := testservice.Postgres(t)
	settings := map[string]string{"TRUNKLINE_DATABASE_URL": url, "TRUNKLINE_DIRECTORY_FILE": directoryFile(t),
		"TRUNKLINE_MASTER_KEY": masterKey}
	var nodes []*node

	for i := range 3 {
		nodes = append(nodes, newNode(t, fmt.Sprint("node ", i+1), settings))
	}

	nodes[0].start(t)
	nodes[0].stop(t)
	db := openDatabase(t, sqldb.Config{URL: url})
	latest := schemaVersion(t, db)
	withNewerSchema(t, db, latest+1, func() {
		messages.mustExit(t, "the database has schema version", nodes[0].settings)
	})

	// A lock on a table that the migration refers to blocks it half-way.
	downgradeSchema(t, db)
	lockTx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}

	release := sync.OnceFunc(func() {
		if err := lockTx.Rollback(); err != nil {
			t.Error(err)
		}
	})
	defer release()

	if _, err := lockTx.ExecContext(t.Context(), `LOCK TABLE identity_users IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}

	nodes[0].startProcess(t)
	awaitBlocked(t, db, 1)
	nodes[0].kill(t)

	for _, n := range nodes[1:] {
		n.startProcess(t)
	}

	// Another node holds the lock on the schema, or the session of the killed one does.
	awaitBlocked(t, db, 2)
	release()
	migrated := 0

	for _, n := range nodes[1:] {
		n.awaitReady(t)
		migrated += messages.row(t, "database schema migrated").countMatches(readFile(t, n.log))
		n.login(t, apiPaths, user("alice"))
	}

	// The session of the killed node may have committed.
	if got := schemaVersion(t, db); got != latest || migrated > 1 {
		t.Errorf("version %d, brought there by %d nodes", got, migrated)
	}

	nodes[0].start(t)
}

// awaitBlocked waits until a number of the database's sessions wait for a lock.
func awaitBlocked(t *testing.T, db *sqldb.DB, sessions int) {
	t.Helper()
	eventually(t, "a migration that waits", func() error {
		var n int
		err := db.QueryRowContext(context.Background(),
			`SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(
			&n)
		if err == nil && n < sessions {
			err = fmt.Errorf("%d wait", n)
		}

		return err
	})
}
