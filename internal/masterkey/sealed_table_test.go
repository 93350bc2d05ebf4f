package masterkey

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
)

// onTables runs a test on a table of n secrets under the keyring's first key,
// and one row without, over SQLite and over PostgreSQL.
func onTables(t *testing.T, n int, test func(t *testing.T, table SealedTable)) {
	for name, cfg := range map[string]func(*testing.T) sqldb.Config{
		"sqlite":   func(t *testing.T) sqldb.Config { return sqldb.Config{Path: filepath.Join(t.TempDir(), "t.db")} },
		"postgres": func(t *testing.T) sqldb.Config { return sqldb.Config{URL: testservice.Postgres(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			db, err := sqldb.Open(t.Context(), cfg(t))
			if err != nil {
				t.Fatal(err)
			}

			t.Cleanup(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})

			k, _ := fileRing(t)
			table := SealedTable{DB: db, Keyring: k, Table: "safes",
				KeyColumns: []string{"owner", "number"}, SecretColumn: "sealed"}
			table.exec(t, `CREATE TABLE safes (owner TEXT, number BIGINT, sealed TEXT NOT NULL, master_key_id TEXT NOT NULL, PRIMARY KEY (owner, number))`)
			table.exec(t, `INSERT INTO safes VALUES ('nobody', 1, '', '')`)

			for i := range n {
				sealed := sealSecret(t, k, fmt.Sprint("secret ", i), "safes", "o", fmt.Sprint(i))
				table.exec(t, `INSERT INTO safes VALUES ('o', $1, $2, $3)`, i, sealed, KeyID(sealed))
			}

			test(t, table)
		})
	}
}

func (t SealedTable) exec(test *testing.T, statement string, args ...any) {
	test.Helper()
	if _, err := t.DB.ExecContext(test.Context(), statement, args...); err != nil {
		test.Fatal(err)
	}
}

// storedSecret opens the one of a row.
func (t SealedTable) storedSecret(test *testing.T, number int) string {
	test.Helper()
	var sealed string
	if err := t.DB.QueryRowContext(test.Context(), `SELECT sealed FROM safes WHERE owner = 'o' AND number = $1`,
		number).Scan(&sealed); err != nil {
		test.Fatal(err)
	}

	secret, err := t.Keyring.Unseal(sealed, "safes", "o", fmt.Sprint(number))
	if err != nil {
		test.Fatal(err)
	}

	return string(secret)
}

func TestResealingGoesOnWhereItWasBrokenOff(t *testing.T) {
	const secrets = 2*resealBatch + 17
	onTables(t, secrets, func(t *testing.T, table SealedTable) {
		next, err := table.Keyring.AddKey()
		if err != nil {
			t.Fatal(err)
		}

		ctx, breakOff := context.WithCancel(t.Context())
		defer breakOff()

		var told []int
		err = table.Reseal(ctx, func(done, total int) { told = append(told, done, total); breakOff() })
		if !errors.Is(err, context.Canceled) || fmt.Sprint(told) != fmt.Sprint([]int{resealBatch, secrets}) {
			t.Fatalf("told %v, %v", told, err)
		}

		if ids, err := table.MasterKeys(t.Context()); err != nil || len(ids) != 2 {
			t.Fatalf("half way: %v, %v", ids, err)
		}

		told = nil
		if err := table.Reseal(t.Context(), func(done, total int) { told = append(told, done, total) }); err != nil {
			t.Fatal(err)
		}

		const rest = secrets - resealBatch
		if fmt.Sprint(told) != fmt.Sprint([]int{resealBatch, rest, rest, rest}) {
			t.Errorf("told %v", told)
		}
		if ids, err := table.MasterKeys(t.Context()); err != nil || len(ids) != 1 || ids[0] != next {
			t.Errorf("in use: %v, %v; want %s", ids, err, next)
		}
		if err := table.Keyring.RemoveUnused(nil); err != nil {
			t.Fatal(err)
		}

		for i := range secrets {
			if got := table.storedSecret(t, i); got != fmt.Sprint("secret ", i) {
				t.Fatalf("%d: %s", i, got)
			}
		}
	})
}

func TestASecretReplacedMeanwhileIsLeftAlone(t *testing.T) {
	onTables(t, 1, func(t *testing.T, table SealedTable) {
		old, err := table.listRowsToReseal(t.Context(), "another", nil)
		if err != nil || len(old) != 1 {
			t.Fatal(old, err)
		}

		fresh := sealSecret(t, table.Keyring, "fresh", "safes", "o", "0")
		table.exec(t, `UPDATE safes SET sealed = $1 WHERE owner = 'o'`, fresh)
		if err := table.resealRow(t.Context(), old[0]); err != nil {
			t.Fatal(err)
		}
		if got := table.storedSecret(t, 0); got != "fresh" {
			t.Errorf("became %s", got)
		}
	})
}

func TestADamagedSecretEndsResealingAndIsNamed(t *testing.T) {
	onTables(t, 3, func(t *testing.T, table SealedTable) {
		if _, err := table.Keyring.AddKey(); err != nil {
			t.Fatal(err)
		}

		table.exec(t, `UPDATE safes SET number = 7 WHERE number = 2`) // moved
		err := table.Reseal(t.Context(), func(int, int) {})
		if err == nil || !strings.Contains(err.Error(), "safes o 7") {
			t.Errorf("%v", err)
		}
	})
}

func TestATableWhoseKeyIsLostIsNotUsed(t *testing.T) {
	onTables(t, 1, func(t *testing.T, table SealedTable) {
		if err := table.Require(t.Context()); err != nil {
			t.Error(err)
		}
		table.Keyring, _ = fileRing(t)
		if err := table.Require(t.Context()); err == nil || !strings.Contains(err.Error(), "TRUNKLINE_MASTER_KEY") {
			t.Errorf("%v", err)
		}
	})
}
