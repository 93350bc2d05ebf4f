package sqldb

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

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

// A rolling upgrade: the new node migrates while the old one runs, and the old one crashes
// and starts again.
func TestNodesOfTheVersionBeforeRunOnANewSchema(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		older := files("0001_make.sql", `CREATE TABLE room_things (id TEXT)`)
		newer := files("0001_make.sql", `CREATE TABLE room_things (id TEXT)`,
			"0002_size.sql", `ALTER TABLE room_things ADD COLUMN size BIGINT NOT NULL DEFAULT 7`)

		put := func(db *DB, statement string) {
			t.Helper()
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}

		oldNode, newNode := openDB(t, cfg), openDB(t, cfg)
		for _, node := range []struct {
			db    *DB
			files fstest.MapFS
		}{{oldNode, older}, {newNode, newer}} {
			if err := node.db.Migrate(t.Context(), "component", node.files); err != nil {
				t.Fatal(err)
			}
		}

		put(oldNode, `INSERT INTO room_things (id) VALUES ('a')`)
		put(newNode, `INSERT INTO room_things (id, size) VALUES ('b', 8)`)

		again := openDB(t, cfg)
		if err := again.Migrate(t.Context(), "component", older); err != nil {
			t.Fatalf("the old node does not start again: %v", err)
		}

		put(again, `INSERT INTO room_things (id) VALUES ('c')`)
		if got := things(t, newNode); got != "a b c" {
			t.Errorf("got %q", got)
		}
		if err := newNode.Migrate(t.Context(), "component", newer); err != nil {
			t.Error(err)
		}
	})
}

func TestMigrateRefusesASchemaThatNeedsANewerProgram(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		newer := files("0001_a.sql", `CREATE TABLE room_a (id TEXT)`, "0002_b.sql", "-- needs 0002\nDROP TABLE room_a",
			"0003_c.sql", `CREATE TABLE room_c (id TEXT)`)
		if err := db.Migrate(t.Context(), "component", newer); err != nil {
			t.Fatal(err)
		}

		delete(newer, "migrations/0003_c.sql")
		if err := db.Migrate(t.Context(), "component", newer); err != nil {
			t.Errorf("version 2 is enough: %v", err)
		}

		delete(newer, "migrations/0002_b.sql")
		err := db.Migrate(t.Context(), "component", newer)
		const want = "migrating component: the database has schema version 3, this program supports up to 1: " +
			"start the newer trunkline again, or restore the backup from before it"
		if err == nil || err.Error() != want {
			t.Errorf("got %v", err)
		}
	})
}

// additiveStatement matches what a node of the version before does not notice.
var additiveStatement = regexp.MustCompile(`(?i)^(CREATE (TABLE|INDEX|UNIQUE INDEX) |` +
	`ALTER TABLE \S+ ADD COLUMN \S+ \S+( NOT NULL DEFAULT .*| DEFAULT .*)?$|INSERT INTO |UPDATE |DELETE FROM )`)

// Every migration of this repository adds to its schema, or says what it needs.
func TestMigrationsAddToTheSchema(t *testing.T) {
	found := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Base(filepath.Dir(path)) != migrationsFolder ||
			filepath.Ext(path) != ".sql" || strings.HasPrefix(d.Name(), "0001_") {
			return err
		}

		found++
		text, err := os.ReadFile(path)
		if err != nil || migrationNeeds.Match(text) {
			return err
		}

		for statement := range strings.SplitSeq(sqlComment.ReplaceAllString(string(text), ""), ";") {
			statement = strings.Join(strings.Fields(statement), " ")
			if statement != "" && !additiveStatement.MatchString(statement) {
				t.Errorf("%s: %.80q may stop nodes of the version before: begin the file with -- needs NNNN", path,
					statement)
			}
		}

		return nil
	})
	if err != nil || found < 10 {
		t.Errorf("%d migrations found: %v", found, err)
	}
}

var sqlComment = regexp.MustCompile(`--[^\n]*`)

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
		"a later need":  files("0001_a.sql", "-- needs 0002\n"),
		"half of a set": files("0001_a.postgres.sql", "", "0002_b.sql", ""),
	} {
		if err := db.Migrate(t.Context(), "component", fs); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
