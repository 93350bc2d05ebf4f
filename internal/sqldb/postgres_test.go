package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/testservice"
)

func TestPostgresThatGoesAwayIsUnavailableAndComesBack(t *testing.T) {
	server := testservice.OwnPostgres(t)
	db := openDB(t, Config{URL: server.URL})
	server.Kill(t)
	err := db.Tx(t.Context(), func(tx *sql.Tx) error { return nil })
	if f := fault.As(err); f.Kind != fault.KindUnavailable || f.RetryAfter <= 0 {
		t.Errorf("got %v", err)
	}

	server.Start(t)
	if err := db.Tx(t.Context(), func(tx *sql.Tx) error { return nil }); err != nil {
		t.Errorf("after its return: %v", err)
	}
}

func TestANewPasswordIsUsedByTheNextConnection(t *testing.T) {
	admin := testservice.Postgres(t)
	address, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}

	role := strings.Trim(strings.ReplaceAll(testservice.Prefix(t), "-", "_"), "_")
	withPassword := func(password string) string {
		changed := *address
		changed.User = url.UserPassword(role, password)
		return changed.String()
	}

	owner := openDB(t, Config{URL: admin})
	mustExec(t, owner, `CREATE ROLE `+role+` LOGIN PASSWORD 'old'`)
	t.Cleanup(func() {
		if _, err := owner.ExecContext(context.Background(), `DROP ROLE `+role); err != nil {
			t.Error(err)
		}
	})

	current, unreadable := withPassword("old"), error(nil)
	db := openDB(t, Config{URL: current, ReadURL: func() (string, error) { return current, unreadable }})
	db.SetMaxIdleConns(0) // each statement connects

	mustExec(t, owner, `ALTER ROLE `+role+` PASSWORD 'new'`)
	current = withPassword("new")
	mustExec(t, db, `SELECT 1`)

	// The file is replaced: what was valid at the start is used, and may be refused.
	mustExec(t, owner, `ALTER ROLE `+role+` PASSWORD 'old'`)
	unreadable = errors.New("no such file")
	mustExec(t, db, `SELECT 1`)
}
