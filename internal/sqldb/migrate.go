package sqldb

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"time"

	"trunkline/internal/fault"
)

// Migrate runs the missing migrations of a component in one transaction: all of them or
// none. Several nodes may run it at once.
//
// files holds, in the folder migrations, NNNN_name.sql for both databases, or a pair
// NNNN_name.postgres.sql and NNNN_name.sqlite.sql; versions count from 0001 without a
// gap. A schema newer than the files is an error, because an older program cannot use
// it.
func (db *DB) Migrate(ctx context.Context, component string, files fs.FS) error {
	if !componentName.MatchString(component) {
		return fmt.Errorf("migrating: invalid package name %q", component)
	}
	migrations, err := db.readMigrations(files)
	if err != nil {
		return fmt.Errorf("migrating %s: %w", component, err)
	}
	// PostgreSQL's default level, not Tx's: a serializable transaction would not see the
	// changes of the previous holder of the lock.
	var oldVersion int
	err = retryBusy(ctx, func(ctx context.Context) error {
		return db.runTx(ctx, nil, func(tx *sql.Tx) (err error) {
			oldVersion, err = db.applyMigrations(ctx, tx, component, migrations)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("migrating %s: %w", component, err)
	}
	if oldVersion > 0 && oldVersion < len(migrations) {
		db.log.Info("database schema migrated", "component", component, "from", oldVersion, "to", len(migrations))
	}
	return nil
}

// applyMigrations returns the version that it found.
func (db *DB) applyMigrations(ctx context.Context, tx *sql.Tx, component string, migrations []migration) (version int, err error) {
	if db.isPostgres {
		if err := lockMigrations(ctx, tx, component); err != nil {
			return 0, err
		}
	}
	table := component + "_schema"
	_, err = tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS `+table+
		` (version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`)
	if err != nil {
		return 0, Wrap(err, "making the version table")
	}
	if err := tx.QueryRowContext(ctx, `SELECT COALESCE(MAX(version), 0) FROM `+table).Scan(&version); err != nil {
		return 0, Wrap(err, "reading the schema's version")
	}
	if version > len(migrations) {
		return 0, fault.Permanent(fmt.Errorf("the database has schema version %d, this program supports up to %d: "+
			"start the newer trunkline again, or restore the backup from before it", version, len(migrations)))
	}
	for _, m := range migrations[version:] {
		if _, err := tx.ExecContext(ctx, m.sql); err != nil {
			return 0, Wrap(err, "applying "+m.name)
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO `+table+` (version, name, applied_at) VALUES ($1, $2, $3)`,
			m.version, m.name, time.Now().Unix())
		if err != nil {
			return 0, Wrap(err, "recording "+m.name)
		}
	}
	return version, nil
}

type migration struct {
	version int
	name    string
	sql     string
}

var (
	componentName     = regexp.MustCompile(`^[a-z][a-z0-9_]{0,40}$`)
	migrationFileName = regexp.MustCompile(`^([0-9]{4})_[a-z0-9_]+(?:\.(postgres|sqlite))?\.sql$`)
)

const migrationsFolder = "migrations"

// readMigrations reads the files for this kind of database; the n-th of the result has
// version n+1.
func (db *DB) readMigrations(files fs.FS) ([]migration, error) {
	entries, err := fs.ReadDir(files, migrationsFolder)
	if err != nil {
		return nil, fmt.Errorf("reading the migrations: %w", err)
	}
	otherDatabase := "postgres"
	if db.isPostgres {
		otherDatabase = "sqlite"
	}
	var migrations []migration
	for _, entry := range entries { // ReadDir sorts by name
		match := migrationFileName.FindStringSubmatch(entry.Name())
		if match == nil {
			return nil, fmt.Errorf("%q is not named like a migration", entry.Name())
		}
		if match[2] == otherDatabase {
			continue
		}
		version, err := strconv.Atoi(match[1])
		if err != nil || version != len(migrations)+1 {
			return nil, fmt.Errorf("%q: want version %04d here", entry.Name(), len(migrations)+1)
		}
		text, err := fs.ReadFile(files, migrationsFolder+"/"+entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", entry.Name(), err)
		}
		migrations = append(migrations, migration{version, entry.Name(), string(text)})
	}
	return migrations, nil
}
