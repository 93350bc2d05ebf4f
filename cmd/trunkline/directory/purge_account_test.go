package directory

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/app/backend"
	"trunkline/cmd/internal/cli"
	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/sqldb"
	"trunkline/settings"
	"trunkline/stats"
)

// tablesOfAccounts returns the tables with a column for the account.
func tablesOfAccounts(t *testing.T, db *sqldb.DB) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND c.name = 'account_id' AND m.name NOT LIKE 'audit_%' ORDER BY m.name`)
	tables, err := sqldb.Collect(rows, err, "listing tables", sqldb.ScanColumn[string])
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// insertRow inserts a row of the account into a table, with any values that its columns accept.
func insertRow(t *testing.T, db *sqldb.DB, table, account string) {
	t.Helper()

	rows, err := db.QueryContext(t.Context(), `SELECT name, type FROM pragma_table_info($1)`, table)
	var names, values []string
	_, err = sqldb.Collect(rows, err, "listing columns", func(scan sqldb.ScanFunc) (struct{}, error) {
		var name, kind string
		err := scan(&name, &kind)
		value := "'" + table + "'"

		switch {
		case name == "account_id":
			value = "'" + account + "'"
		case name == "master_key_id", name == "pauses", name == "hold_reason":
			value = "''" // no sealed secret, pause or legal hold
		case name == "object":
			value = "'" + account + "/file'"
		case kind != "TEXT":
			value = "0"
		}

		names, values = append(names, `"`+name+`"`), append(values, value)
		return struct{}{}, err
	})
	if err == nil {
		_, err = db.ExecContext(t.Context(),
			fmt.Sprintf(`INSERT INTO %s (%s) VALUES (%s)`, table, strings.Join(names, ", "),
				strings.Join(values, ", ")))
	}
	if err != nil {
		t.Fatalf("%s: %v", table, err)
	}
}

// A table with a column for the account must be covered by the purge, also in packages that are
// added later.
func TestDeletingAnAccountNowPurgesEveryTable(t *testing.T) {
	w := newRunner(t)
	for _, id := range []string{"gone", "stays"} {
		w.MustRun("account", "create", id, "--domain", id+".example", "--id", id)
		w.MustRun("user", "create", "alice", "--account", id, "--presence-id", "1001")
		w.MustRun("apikey", "create", "--account", id)
	}

	w.MustRun("account", "create", "first", "--domain", "first.example", "--id", "first")
	w.MustRun("account", "delete", "first", "--now") // creates all tables
	w.MustRun("account", "delete", "first", "--now")

	if _, err := os.Stat(filepath.Join(w.Dir, "broker")); !os.IsNotExist(err) {
		t.Errorf("an embedded broker was made: %v", err)
	}

	w.MustFail(cli.ExitFailed, "ids are not given again", "account", "create", "again", "--domain", "again.example",
		"--id", "first")
	w.MustFail(cli.ExitFailed, "There is no deleted account", "account", "delete", "nobody", "--now")

	s := settings.Default()
	s.DataDir = w.Dir
	db, err := backend.OpenDatabase(t.Context(), s, (&cli.Program{Err: os.Stderr}).ToolLog())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	file := filepath.Join(w.Dir, "recordings", "gone", "file")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("audio"), 0o600); err != nil {
		t.Fatal(err)
	}

	count := func(table, account string) (n int) {
		if err := db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM `+table+` WHERE account_id = $1`,
			account).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}

	tables := tablesOfAccounts(t, db)
	for _, table := range tables {
		if count(table, "gone") == 0 {
			insertRow(t, db, table, "gone")
		}
		if count(table, "gone") == 0 {
			t.Errorf("%s has no row to purge", table)
		}
	}

	if len(tables) < 8 {
		t.Errorf("tables are %q", tables)
	}

	w.MustRun("account", "delete", "gone", "--now")
	for _, table := range tables {
		if n := count(table, "gone"); n > 0 {
			t.Errorf("%s still has %d rows", table, n)
		}
	}

	if count("identity_users", "stays") != 1 || count("identity_api_keys", "stays") != 1 {
		t.Error("another account lost rows")
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the recording's file: %v", err)
	}

	var purged sql.NullInt64
	if err := db.QueryRowContext(t.Context(),
		`SELECT purged_at FROM identity_deleted_accounts WHERE id = 'gone'`).Scan(&purged); err != nil ||
		!purged.Valid {
		t.Errorf("purged at %v, %v", purged, err)
	}
}

// Queue configurations are on Kafka, in the server's broker.
func TestDeletingAnAccountNowPurgesTheConfigurationOfItsQueues(t *testing.T) {
	w := newRunner(t)
	s := w.Serve()
	for _, id := range []string{"gone", "stays"} {
		w.MustRun("account", "create", id, "--domain", id+".example", "--id", id)
	}

	cluster, closeKafka, err := backend.OpenSharedKafka(t.Context(), s, (&cli.Program{Err: os.Stderr}).ToolLog())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeKafka() }()

	producer := cluster.NewProducer(kafka.ProducerConfig{})
	defer func() { _ = producer.Close(t.Context()) }()

	configs := stats.NewQueueConfigs(cluster, producer)
	for _, id := range []string{"gone", "gone", "stays"} {
		if _, err := configs.Update(t.Context(), id, stats.DefaultQueueConfig(), ""); err != nil {
			t.Fatal(err)
		}
	}

	w.MustRun("account", "delete", "gone", "--now")
	left := map[string]bool{} // keys that have a value
	_, err = cluster.ScanCompacted(t.Context(), event.TopicQueues, 0, 0, func() { clear(left) }, func(r *kafka.Record) {
		left[string(r.Key)] = true
		if r.Value == nil {
			delete(left, string(r.Key))
		}
	})
	if err != nil {
		t.Fatal(err)
	}

	for key := range left {
		if !strings.HasPrefix(key, "stays|1|") {
			t.Errorf("%s is left", key)
		}
	}

	if len(left) != 1 {
		t.Errorf("%d configurations are left, want 1", len(left))
	}
}
