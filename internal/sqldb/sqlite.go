package sqldb

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	busyTimeout = 10 * time.Second
	// Readers do not block each other or the writer; more connections than
	// this only cost page caches.
	sqliteMaxConns = 8
)

func openSQLite(cfg Config) (*DB, error) {
	if err := createFile(cfg.Path); err != nil {
		return nil, err
	}

	connector, err := sqlite.NewConnector(sqliteDSN(cfg.Path))
	if err != nil {
		return nil, fmt.Errorf("opening the database: %w", err)
	}

	pool := sql.OpenDB(textCheckingConnector{connector})
	pool.SetMaxOpenConns(sqliteMaxConns)
	pool.SetMaxIdleConns(sqliteMaxConns)

	return &DB{DB: pool, path: cfg.Path, writer: make(chan struct{}, 1)}, nil
}

// sqliteDSN sets the pragmas that durability and several processes need on every
// connection. busy_timeout comes first, so that the pragmas after it wait too.
func sqliteDSN(path string) string {
	query := url.Values{
		"_txlock": {"immediate"}, // a transaction that writes after a read could not wait for the lock
		"_dqs":    {"0"},
		"_pragma": {
			"busy_timeout(" + strconv.FormatInt(busyTimeout.Milliseconds(), 10) + ")",
			"journal_mode(WAL)",
			"synchronous(FULL)",
			"foreign_keys(ON)",
			"journal_size_limit(67108864)",
		},
	}
	file := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}

	return file.String()
}

// createFile creates a missing database file that only its owner can read, because it has
// keys. SQLite gives its other files the same mode. An existing file is never opened
// here (see the package comment).
func createFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making the database's folder: %w", err)
	}

	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("making the database file: %w", err)
	}

	return file.Close()
}

// sqliteCode returns the extended result code in err's chain.
func sqliteCode(err error) (code int, ok bool) {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0, false
	}
	return e.Code(), true
}

const primaryCodeMask = 0xff // the low byte of an extended result code

func sqliteBusy(code int) bool {
	code &= primaryCodeMask
	return code == sqlite3.SQLITE_BUSY || code == sqlite3.SQLITE_LOCKED
}

// sqliteInterrupted reports whether the context of an attempt ended, or the attempt lost
// a race for the WAL file's locks too often.
func sqliteInterrupted(code int) bool {
	code &= primaryCodeMask
	return code == sqlite3.SQLITE_INTERRUPT || code == sqlite3.SQLITE_PROTOCOL
}

func sqliteUnavailable(code int) bool {
	switch code & primaryCodeMask {
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN,
		sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT:
		return true
	}
	return sqliteBusy(code)
}

func sqliteDamaged(code int) bool {
	code &= primaryCodeMask
	return code == sqlite3.SQLITE_NOTADB || code == sqlite3.SQLITE_CORRUPT
}

func sqliteUnique(code int) bool {
	return code == sqlite3.SQLITE_CONSTRAINT_UNIQUE || code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
}
