package sqldb

import (
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func files(named ...string) fstest.MapFS {
	fs := fstest.MapFS{}
	for i := 0; i < len(named); i += 2 {
		fs[migrationsFolder+"/"+named[i]] = &fstest.MapFile{Data: []byte(named[i+1])}
	}
	return fs
}

func TestMigrateAppliesWhatIsNewOnceAndInOrder(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		first := files("0001_make.sql", `CREATE TABLE room_things (id TEXT); INSERT INTO room_things VALUES ('one');`)
		second := files("0001_make.sql", string(first["migrations/0001_make.sql"].Data),
			"0002_fill.postgres.sql", `INSERT INTO room_things VALUES ('postgres')`,
			"0002_fill.sqlite.sql", `INSERT INTO room_things VALUES ('sqlite')`,
			"0003_more.sql", `INSERT INTO room_things VALUES ('three')`)
		for _, fs := range []fstest.MapFS{first, first, second, second} {
			if err := db.Migrate(t.Context(), "component", fs); err != nil {
				t.Fatal(err)
			}
		}
		want := map[bool]string{true: "one postgres three", false: "one sqlite three"}[db.Postgres()]
		if got := things(t, db); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func things(t *testing.T, db *DB) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT id FROM room_things ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		all = append(all, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}

func TestMigrateByManyNodesAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		fs := files("0001_make.sql", `CREATE TABLE room_things (id TEXT)`,
			"0002_fill.sql", `INSERT INTO room_things VALUES ('x')`)
		nodes := []*DB{openDB(t, cfg), openDB(t, cfg), openDB(t, cfg)}
		var group sync.WaitGroup
		for _, db := range nodes {
			group.Go(func() {
				if err := db.Migrate(t.Context(), "component", fs); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if got := things(t, nodes[0]); got != "x" {
			t.Errorf("got %q", got)
		}
	})
}

func TestMigrateIsAllOrNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		good := files("0001_make.sql", `CREATE TABLE room_things (id TEXT)`)
		broken := files("0001_make.sql", `CREATE TABLE room_things (id TEXT)`, "0002_bad.sql", `CREATE NONSENSE`)
		if err := db.Migrate(t.Context(), "component", broken); err == nil {
			t.Fatal("nonsense was applied")
		}
		if err := db.Migrate(t.Context(), "component", good); err != nil {
			t.Errorf("the first file was applied before: %v", err)
		}
	})
}

func TestMigrateRefusesANewerSchema(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		newer := files("0001_a.sql", `CREATE TABLE room_a (id TEXT)`, "0002_b.sql", `CREATE TABLE room_b (id TEXT)`)
		if err := db.Migrate(t.Context(), "component", newer); err != nil {
			t.Fatal(err)
		}
		delete(newer, "migrations/0002_b.sql")
		err := db.Migrate(t.Context(), "component", newer)
		const want = "migrating component: the database has schema version 2, this program supports up to 1: " +
			"start the newer trunkline again, or restore the backup from before it"
		if err == nil || err.Error() != want {
			t.Errorf("got %v", err)
		}
	})
}

func TestMigrateKeepsComponentsApart(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		for _, component := range []string{"one", "two"} {
			fs := files("0001_a.sql", `CREATE TABLE `+component+`_a (id TEXT)`)
			if err := db.Migrate(t.Context(), component, fs); err != nil {
				t.Error(err)
			}
		}
		if err := db.Migrate(t.Context(), "x; DROP TABLE one_a", files()); err == nil {
			t.Error("the name of a component may not contain SQL")
		}
	})
}

func TestMigrateRefusesFilesThatDoNotCount(t *testing.T) {
	db := openDB(t, Config{Path: t.TempDir() + "/x.db"})
	for name, fs := range map[string]fstest.MapFS{
		"a gap":         files("0001_a.sql", "", "0003_c.sql", ""),
		"a late start":  files("0002_a.sql", ""),
		"a twin":        files("0001_a.sql", "", "0001_b.sql", ""),
		"a stray file":  files("0001_a.sql", "", "readme.txt", ""),
		"another kind":  files("0001_a.mysql.sql", ""),
		"half of a set": files("0001_a.postgres.sql", "", "0002_b.sql", ""),
	} {
		if err := db.Migrate(t.Context(), "component", fs); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
