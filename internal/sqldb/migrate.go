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
// gap. A migration adds to the schema, so that nodes of the version before run on it and
// start again on it. One whose first line is "-- needs NNNN" does not: nodes whose files
// end before NNNN refuse a schema that has it. It needs that line too if an older node
// would allow what its rows forbid.
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
	var found schema
	err = retryBusy(ctx, func(ctx context.Context) error {
		return db.runTx(ctx, nil, func(tx *sql.Tx) (err error) {
			found, err = db.applyMigrations(ctx, tx, component, migrations)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("migrating %s: %w", component, err)
	}

	switch {
	case found.version > len(migrations):
		db.log.Info("database schema of a newer version",
			"component", component, "version", found.version, "supported", len(migrations))
	case found.version > 0 && found.version < len(migrations):
		db.log.Info("database schema migrated", "component", component, "from", found.version, "to", len(migrations))
	}

	return nil
}

// schema is the state of a component's tables.
type schema struct {
	version int
	needs   int // the least version of a program that can use it
}

// applyMigrations returns the schema that it found.
func (db *DB) applyMigrations(ctx context.Context, tx *sql.Tx, component string,
	migrations []migration) (found schema, err error) {
	if db.isPostgres {
		if err := lockMigrations(ctx, tx, component); err != nil {
			return found, err
		}
	}

	table, needs := component+"_schema", component+"_schema_needs"
	_, err = tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS `+table+
		` (version BIGINT PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)`)
	if err == nil { // a table of its own: older programs know the other one as it is
		_, err = tx.ExecContext(ctx,
			`CREATE TABLE IF NOT EXISTS `+needs+` (version BIGINT PRIMARY KEY, needs BIGINT NOT NULL)`)
	}
	if err != nil {
		return found, Wrap(err, "making the version tables")
	}

	row := tx.QueryRowContext(ctx, `SELECT (SELECT COALESCE(MAX(version), 0) FROM `+table+`),`+
		` (SELECT COALESCE(MAX(needs), 0) FROM `+needs+`)`)
	if err := row.Scan(&found.version, &found.needs); err != nil {
		return found, Wrap(err, "reading the schema's version")
	}

	// In a rolling upgrade, programs of the version before run on a newer schema: only one that needs more stops them.
	if found.version > len(migrations) {
		if found.needs > len(migrations) {
			return found, fault.Permanent(
				fmt.Errorf("the database has schema version %d, this program supports up to %d: "+
					"start the newer trunkline again, or restore the backup from before it", found.version,
					len(migrations)))
		}

		return found, nil
	}

	for _, m := range migrations[found.version:] {
		_, err := tx.ExecContext(ctx, m.sql)
		if err != nil {
			return found, Wrap(err, "applying "+m.name)
		}

		_, err = tx.ExecContext(ctx, `INSERT INTO `+table+` (version, name, applied_at) VALUES ($1, $2, $3)`,
			m.version, m.name, time.Now().Unix())
		if err == nil && m.needs > 0 {
			_, err = tx.ExecContext(ctx, `INSERT INTO `+needs+` (version, needs) VALUES ($1, $2)`, m.version, m.needs)
		}
		if err != nil {
			return found, Wrap(err, "recording "+m.name)
		}
	}

	return found, nil
}

type migration struct {
	version int
	name    string
	sql     string
	needs   int // the least version of a program that can use the schema; 0: any
}

var (
	componentName     = regexp.MustCompile(`^[a-z][a-z0-9_]{0,40}$`)
	migrationNeeds    = regexp.MustCompile(`^-- needs ([0-9]{4})\n`)
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

		m := migration{version: version, name: entry.Name(), sql: string(text)}
		needs := migrationNeeds.FindStringSubmatch(m.sql)
		if needs != nil {
			m.needs, err = strconv.Atoi(needs[1])
			if err != nil || m.needs > version {
				return nil, fmt.Errorf("%q: it needs a version after its own", entry.Name())
			}
		}

		migrations = append(migrations, m)
	}

	return migrations, nil
}
