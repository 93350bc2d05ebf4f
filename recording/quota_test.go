package recording

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/testservice/testdb"
)

// An account with its quota of bytes stores no more; another one does.
func TestTheBytesOfAnAccountAreBounded(t *testing.T) {
	settings := DefaultSettings()
	settings.MaxAccountBytes = 1000

	e := newEnv(t, settings, testdb.SQLite(t))
	store := func(account, id string) error {
		_, err := e.Service.Store(t.Context(),
			Upload{AccountID: account, RecordingID: id, Body: strings.NewReader(strings.Repeat("x", 600))})
		return err
	}

	for _, id := range []string{"a", "b"} {
		if err := store("acme", id); err != nil {
			t.Fatal(err)
		}
	}

	if f := fault.As(store("acme", "c")); f.Kind != fault.KindConflict ||
		!strings.Contains(f.Message, "recordings.max_account_bytes") {
		t.Errorf("over the quota: %v", f)
	}
	if err := store("other", "a"); err != nil {
		t.Error("another account:", err)
	}
}

// An account with its quota of bytes has no recording of a call begun either, nor has any where the
// disk is full: a call goes on without one.
func TestCallsOfAnAccountAboveItsQuotaAreNotRecorded(t *testing.T) {
	settings := DefaultSettings()
	settings.MaxAccountBytes = 1000
	e := newEnv(t, settings, testdb.SQLite(t))
	e.liveDir = filepath.Join(t.TempDir(), "in-progress")

	begin := func(account string) error {
		journal, err := e.newLiveRecording(account, Call{CallID: "call"}).openJournal(t.Context())
		if err == nil {
			check(t, journal.file.Close())
		}
		return err
	}

	_, err := e.Store(t.Context(),
		Upload{AccountID: "acme", RecordingID: "a", Body: strings.NewReader(strings.Repeat("x", 1200))})
	check(t, err)

	if f := fault.As(begin("acme")); f.Kind != fault.KindConflict ||
		!strings.Contains(f.Message, "recordings.max_account_bytes") {
		t.Errorf("over the quota: %v", f)
	}
	if _, err := os.Stat(e.liveDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was begun: %v", err)
	}

	check(t, begin("other"))

	e.checkFreeSpace = func() error { return errors.New("full") }
	if err := begin("other"); fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("on a full disk: %v", err)
	}
}
