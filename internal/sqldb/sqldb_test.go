package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/testservice"
)

// onBoth runs test over a fresh SQLite file and a fresh PostgreSQL database.
func onBoth(t *testing.T, test func(t *testing.T, cfg Config)) {
	t.Run("sqlite", func(t *testing.T) { test(t, Config{Path: filepath.Join(t.TempDir(), "test.db")}) })
	t.Run("postgres", func(t *testing.T) { test(t, Config{URL: testservice.Postgres(t)}) })
}

func openDB(t *testing.T, cfg Config) *DB {
	t.Helper()
	db, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})

	return db
}

func mustExec(t *testing.T, db *DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

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

func TestTxIsSerializableOverTwoPools(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		pools := []*DB{openDB(t, cfg), openDB(t, cfg)}
		mustExec(t, pools[0], `CREATE TABLE counter (n BIGINT NOT NULL)`)
		mustExec(t, pools[0], `INSERT INTO counter VALUES (0)`)
		const each = 10
		var group sync.WaitGroup

		for _, db := range []*DB{pools[0], pools[0], pools[1], pools[1]} {
			group.Go(func() {
				for range each {
					if err := db.Tx(t.Context(), addOne(t.Context())); err != nil {
						t.Error(err)
					}
				}
			})
		}

		group.Wait()
		var n int
		if err := pools[1].QueryRowContext(t.Context(), `SELECT n FROM counter`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != 4*each {
			t.Errorf("%d additions were lost", 4*each-n)
		}
	})
}

// addOne reads and then writes: a level below serializable would lose
// additions.
func addOne(ctx context.Context) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		var n int
		if err := tx.QueryRowContext(ctx, `SELECT n FROM counter`).Scan(&n); err != nil {
			return Wrap(err, "reading the counter")
		}
		_, err := tx.ExecContext(ctx, `UPDATE counter SET n = $1`, n+1)
		return Wrap(err, "writing the counter")
	}
}

func TestTxRollsBackWhenFnFailsOrPanics(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		mustExec(t, db, `CREATE TABLE things (id TEXT PRIMARY KEY)`)
		insert := func(tx *sql.Tx) {
			if _, err := tx.ExecContext(t.Context(), `INSERT INTO things VALUES ('a')`); err != nil {
				t.Error(err)
			}
		}

		refused := fault.Conflict("no")
		err := db.Tx(t.Context(), func(tx *sql.Tx) error { insert(tx); return refused })
		if !errors.Is(err, refused) {
			t.Errorf("got %v", err)
		}

		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = db.Tx(t.Context(), func(tx *sql.Tx) error { insert(tx); panic("fn") })
		}()

		// Would block if the writer slot were not released.
		if err := db.Tx(t.Context(), func(tx *sql.Tx) error { insert(tx); return nil }); err != nil {
			t.Errorf("after the rollbacks: %v", err)
		}
	})
}

// database/sql rolls a transaction back by itself when its context ends; the
// commit then says only that the transaction is over.
func TestTxWhoseContextEndedIsUnavailable(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		err := db.Tx(ctx, func(tx *sql.Tx) error {
			cancel()
			for {
				if _, err := tx.ExecContext(t.Context(), `SELECT 1`); errors.Is(err, sql.ErrTxDone) {
					return nil
				}
			}
		})
		if fault.KindOf(err) != fault.KindUnavailable {
			t.Errorf("got %v", err)
		}
	})
}

func TestUniqueConstraintsAreRecognised(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		mustExec(t, db, `CREATE TABLE things (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, n BIGINT CHECK (n > 0))`)
		mustExec(t, db, `INSERT INTO things VALUES ('a', 'b', 1)`)

		for query, unique := range map[string]bool{
			`INSERT INTO things VALUES ('a', 'c', 1)`:  true,
			`INSERT INTO things VALUES ('c', 'b', 1)`:  true,
			`INSERT INTO things VALUES ('c', 'c', 0)`:  false,
			`INSERT INTO things VALUES ('c', NULL, 1)`: false,
		} {
			err := db.Tx(t.Context(), func(tx *sql.Tx) error {
				_, err := tx.ExecContext(t.Context(), query)
				return err
			})
			if err == nil || IsUniqueViolation(err) != unique || IsUniqueViolation(Wrap(err, "x")) != unique {
				t.Errorf("%s: unique is not %v: %v", query, unique, err)
			}

			if kind := fault.KindOf(err); kind != fault.KindInternal {
				t.Errorf("%s: kind %s", query, kind)
			}
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

func TestWrapTellsAwayFromWrong(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		_, err := db.ExecContext(t.Context(), `SELECT nonsense FROM nowhere`)
		if kind := fault.KindOf(Wrap(err, "reading")); kind != fault.KindInternal {
			t.Errorf("a wrong statement is %s", kind)
		}

		ended, cancel := context.WithCancel(t.Context())
		cancel()

		_, err = db.ExecContext(ended, `SELECT 1`)
		if kind := fault.KindOf(Wrap(err, "reading")); kind != fault.KindUnavailable {
			t.Errorf("an ended context is %s", kind)
		}

		wrapped := Wrap(fault.NotFound("no such thing"), "reading")
		if fault.KindOf(wrapped) != fault.KindNotFound || Wrap(nil, "reading") != nil {
			t.Errorf("got %v", wrapped)
		}
	})
}

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
	db := openDB(t, Config{URL: current, CurrentURL: func() (string, error) { return current, unreadable }})
	db.SetMaxIdleConns(0) // each statement connects

	mustExec(t, owner, `ALTER ROLE `+role+` PASSWORD 'new'`)
	current = withPassword("new")
	mustExec(t, db, `SELECT 1`)

	// The file is replaced: what was valid at the start is used, and may be refused.
	mustExec(t, owner, `ALTER ROLE `+role+` PASSWORD 'old'`)
	unreadable = errors.New("no such file")
	mustExec(t, db, `SELECT 1`)
}

func TestOpenRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "notadatabase")
	if err := os.WriteFile(file, []byte("this is not a database, by any means"), 0o600); err != nil {
		t.Fatal(err)
	}

	for name, cfg := range map[string]Config{
		"nothing":         {},
		"another scheme":  {URL: "mysql://u:hunter2@localhost/x"},
		"a bad URL":       {URL: "postgres://u:hunter2@localhost:notaport/x"},
		"nobody there":    {URL: "postgres://u:hunter2@127.0.0.1:1/x"},
		"another file":    {Path: file},
		"a folder's path": {Path: t.TempDir()},
	} {
		db, err := Open(t.Context(), cfg)
		if err == nil {
			t.Errorf("%s was opened", name)
			_ = db.Close()
			continue
		}
		if contains(err.Error(), "hunter2") {
			t.Errorf("%s: the password is in the error: %v", name, err)
		}
	}
}

func TestSQLiteFileIsItsOwnersAloneWhateverItsName(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?c#d%20e", "x.db")
	db := openDB(t, Config{Path: path})
	mustExec(t, db, `CREATE TABLE things (id TEXT)`)

	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}

		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, info.Mode())
		}
	}

	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1"} {
		var got string
		if err := db.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q: %v", pragma, got, err)
		}
	}
}

func TestSQLiteReadersDoNotWaitForAWriter(t *testing.T) {
	db := openDB(t, Config{Path: filepath.Join(t.TempDir(), "x.db")})
	mustExec(t, db, `CREATE TABLE things (id TEXT)`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	err := db.Tx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO things VALUES ('a')`); err != nil {
			return err
		}

		var n int
		err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM things`).Scan(&n)
		if n != 0 {
			t.Error("the reader saw what is not committed")
		}

		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestManyProcessesMayOpenANewSQLiteFileAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	files := fstest.MapFS{"migrations/0001_a.sql": {Data: []byte(`CREATE TABLE things (id TEXT)`)}}
	var group sync.WaitGroup

	for range 8 {
		group.Go(func() {
			db, err := Open(t.Context(), Config{Path: path})
			if err != nil {
				t.Error(err)
				return
			}

			if err := db.Migrate(t.Context(), "room", files); err != nil {
				t.Error(err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}

	group.Wait()
}
