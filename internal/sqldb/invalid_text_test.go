package sqldb

import (
	"context"
	"testing"

	"trunkline/internal/fault"
)

// PostgreSQL refuses NUL and invalid UTF-8 in text. The embedded default has to
// refuse them too, or a test on SQLite alone says nothing about PostgreSQL.
func TestNULAndInvalidUTF8AreRefused(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		mustExec(t, db, `CREATE TABLE texts (t TEXT NOT NULL)`)

		const insert, query = `INSERT INTO texts (t) VALUES ($1)`, `SELECT COUNT(*) FROM texts WHERE t = $1`
		ways := map[string]func(ctx context.Context, text any) error{
			"exec": func(ctx context.Context, text any) error {
				_, err := db.ExecContext(ctx, insert, text)
				return err
			},
			"query": func(ctx context.Context, text any) error {
				var n int
				return db.QueryRowContext(ctx, query, text).Scan(&n)
			},
			"prepared": func(ctx context.Context, text any) error {
				statement, err := db.PrepareContext(ctx, insert)
				if err != nil {
					return err
				}
				defer statement.Close()

				_, err = statement.ExecContext(ctx, text)
				return err
			},
			"bulk": func(ctx context.Context, text any) error {
				return db.BulkTx(ctx, func(l *BulkTx) error {
					return l.CopyIn(ctx, "texts", []string{"t"}, 1, func(int) []any { return []any{text} })
				})
			},
		}

		for way, do := range ways {
			for _, text := range []string{"a\x00b", "\x00", "\xff", "a\xc3"} {
				for _, value := range []any{text, &text} {
					if err := do(t.Context(), value); err == nil ||
						fault.KindOf(Wrap(err, "writing")) != fault.KindInternal {
						t.Errorf("%s, %T %q: %v", way, value, text, err)
					}
				}
			}

			for _, text := range []string{"", "Zoë 日本", "\u0001"} {
				if err := do(t.Context(), text); err != nil {
					t.Errorf("%s: %q is refused: %v", way, text, err)
				}
			}
		}
	})
}

func TestBytesAreNotText(t *testing.T) {
	onBoth(t, func(t *testing.T, cfg Config) {
		db := openDB(t, cfg)
		kind := "BLOB"
		if db.Postgres() {
			kind = "BYTEA"
		}

		mustExec(t, db, `CREATE TABLE secrets (s `+kind+` NOT NULL)`)
		mustExec(t, db, `INSERT INTO secrets (s) VALUES ($1)`, []byte("\x00\xff"))
		var got []byte
		if err := db.QueryRowContext(t.Context(), `SELECT s FROM secrets`).Scan(&got); err != nil ||
			string(got) != "\x00\xff" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}
