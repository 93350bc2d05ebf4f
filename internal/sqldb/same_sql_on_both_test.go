package sqldb

import "testing"

func TestPlaceholdersMayRepeatAndComeInAnyOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		var got string
		err := db.QueryRowContext(t.Context(),
			`SELECT CAST($2 AS TEXT) || CAST($1 AS TEXT) || CAST($2 AS TEXT)`, "a", "b").Scan(&got)
		if err != nil || got != "bab" {
			t.Fatalf("got %q: %v", got, err)
		}

		if db.Postgres() != (cfg.URL != "") {
			t.Errorf("Postgres() is %v", db.Postgres())
		}
	})
}

func TestForeignKeysHold(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		mustExec(t, db, `CREATE TABLE parents (id TEXT PRIMARY KEY)`)
		mustExec(t, db, `CREATE TABLE children (id TEXT REFERENCES parents(id))`)
		if _, err := db.ExecContext(t.Context(), `INSERT INTO children VALUES ('x')`); err == nil {
			t.Error("a child without a parent was stored")
		}
	})
}
