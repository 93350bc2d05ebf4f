package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
)

// TestDatabaseAway starts without PostgreSQL, starts it, stops it, and makes it refuse writes.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	p := readMessageTable(t)
	waiting, gone := p.row(t, "waiting for the database: ch"), p.row(t, "database does not answer")
	postgres := testservice.OwnPostgres(t)
	settings := map[string]string{"TRUNKLINE_DATABASE_URL": postgres.URL, "TRUNKLINE_DIRECTORY_FILE": directoryFile(t),
		"TRUNKLINE_MASTER_KEY": masterKey}
	postgres.Kill(t)

	given := newNode(t, "told to end", settings)
	given.startProcess(t)
	given.awaitMessage(t, waiting)
	given.awaitUnready(t, "waiting for the database")
	given.mustStopWhileWaiting(t)

	if count := given.countMessages(t, waiting); count != 1 {
		t.Errorf("logged %d times", count)
	}

	n := newNode(t, "waits", settings)
	n.startProcess(t)
	n.awaitMessage(t, waiting)
	postgres.Start(t)
	n.awaitReady(t)
	n.login(t, apiPaths, user("alice"))

	if err := n.checkMetric("trunkline_ready", "1"); err != nil {
		t.Error(err)
	}

	postgres.Kill(t)
	n.awaitMessage(t, gone)
	if err := n.checkMetric(`trunkline_dependency_up{dependency="database"}`, "0"); err != nil {
		t.Error(err)
	}
	if status, text, err := n.probe("/readyz"); err != nil || status != http.StatusOK {
		t.Errorf("/readyz with the database away: %d %s %v", status, text, err)
	}
	if a := n.tryPortalLogin(t); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("a login without the database: %s", a)
	}

	postgres.Start(t)
	eventually(t, "logins", func() error {
		if a := n.tryPortalLogin(t); a.status != http.StatusOK {
			return fmt.Errorf("%s", a)
		}
		return nil
	})

	// A full disk: PostgreSQL answers and refuses each write with 53100.
	db := openDatabase(t, sqldb.Config{URL: postgres.URL})
	for _, statement := range []string{
		`CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`,
		`CREATE TRIGGER full_disk BEFORE INSERT ON identity_refresh_tokens EXECUTE FUNCTION full_disk()`,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}

	if a := n.tryPortalLogin(t); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("a login with the database's disk full: %s", a)
	}
	if _, err := db.ExecContext(t.Context(), `DROP TRIGGER full_disk ON identity_refresh_tokens`); err != nil {
		t.Fatal(err)
	}
	if a := n.tryPortalLogin(t); a.status != http.StatusOK {
		t.Errorf("a login when there is room again: %s", a)
	}
}
