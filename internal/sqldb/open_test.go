package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/testservice"
)

// lockFile holds the exclusive lock of a database that is not in WAL mode yet,
// as another process does that turns it into it.
func lockFile(t *testing.T, path string) (release func()) {
	t.Helper()
	if err := createFile(path); err != nil {
		t.Fatal(err)
	}

	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}

	other.SetMaxOpenConns(1)
	if _, err := other.ExecContext(t.Context(), `BEGIN EXCLUSIVE`); err != nil {
		t.Fatal(err)
	}

	return sync.OnceFunc(func() {
		if _, err := other.ExecContext(context.Background(), `ROLLBACK`); err != nil {
			t.Error(err)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	})
}

const waits = "sqlite is busy or its disk is slow"

func TestOpeningWaitsForALockedSQLiteFile(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a lock")
	}

	path := filepath.Join(t.TempDir(), "test.db")
	release := lockFile(t, path)
	defer release()

	log := &testservice.Log{}
	opened := make(chan error, 1)
	go func() {
		db, err := Open(t.Context(),
			Config{Path: path, Log: slog.New(slog.NewTextHandler(log, nil)), attemptTimeout: 50 * time.Millisecond})
		if err == nil {
			err = db.Close()
		}
		opened <- err
	}()

	for !strings.Contains(log.String(), waits) {
		select {
		case err := <-opened:
			t.Fatalf("gave up, or did not wait: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}

	release()
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

func TestOpeningALockedFileEndsWithItsContext(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a lock")
	}

	path := filepath.Join(t.TempDir(), "test.db")
	defer lockFile(t, path)()

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()

	_, err := Open(ctx, Config{Path: path, attemptTimeout: 20 * time.Millisecond})
	if fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("got %v", err)
	}
}

func TestOpeningWhatIsNoDatabaseFailsAtOnce(t *testing.T) {
	log := &testservice.Log{}
	_, err := Open(t.Context(), Config{Path: t.TempDir(), Log: slog.New(slog.NewTextHandler(log, nil))})
	if err == nil || errors.Is(err, context.DeadlineExceeded) || strings.Contains(log.String(), waits) {
		t.Errorf("got %v", err)
	}
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
