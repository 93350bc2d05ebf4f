package recording

import (
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
		_, err := e.Service.Store(t.Context(), Upload{AccountID: account, RecordingID: id, Body: strings.NewReader(strings.Repeat("x", 600))})
		return err
	}
	for _, id := range []string{"a", "b"} {
		if err := store("acme", id); err != nil {
			t.Fatal(err)
		}
	}
	if f := fault.As(store("acme", "c")); f.Kind != fault.KindConflict || !strings.Contains(f.Message, "recordings.max_account_bytes") {
		t.Errorf("over the quota: %v", f)
	}
	if err := store("other", "a"); err != nil {
		t.Error("another account:", err)
	}
}
