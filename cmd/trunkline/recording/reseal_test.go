package recording

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/app/backend"
	"trunkline/audit/audittest"
	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/config/encryption"
	"trunkline/recording"
)

// openRecordings opens the recordings of a server on the data directory.
func openRecordings(w *clitest.Runner) (*encryption.Service, *recording.Service) {
	w.T.Helper()
	p := &cli.Program{Err: io.Discard, Env: []string{"TRUNKLINE_DATA_DIR=" + w.Dir}}
	s, err := p.Settings()
	check(w.T, err)
	db, err := backend.OpenDatabase(w.T.Context(), s, p.ToolLog())
	check(w.T, err)
	w.T.Cleanup(func() { check(w.T, db.Close()) })
	keys, err := backend.MasterKeys(s)
	check(w.T, err)
	_, err = keys.Create()
	check(w.T, err)
	audited := audittest.New(w.T, db)
	configs, err := encryption.New(w.T.Context(), db, keys, audited, prometheus.NewRegistry())
	check(w.T, err)
	store, closeStore, err := backend.Recordings(s, p.ToolLog())
	check(w.T, err)
	w.T.Cleanup(func() { check(w.T, closeStore()) })
	recordings, err := recording.New(w.T.Context(), recording.Settings{}, recording.Deps{
		DB: db, Store: store, Keys: configs, Audit: audited, Metrics: prometheus.NewRegistry(), Log: p.ToolLog(),
	})
	check(w.T, err)

	return configs, recordings
}

func TestKeysAreRotatedAndRecordingsMovedBesideAServer(t *testing.T) {
	w := newRunner(t)
	w.MustRun("account", "create", "Acme", "--id", "acme", "--domain", "acme.test")

	configs, recordings := openRecordings(w)
	rotate := func(key string) {
		_, err := configs.Update(t.Context(), "acme", encryption.Change{Enabled: true, Key: &key}, "")
		check(t, err)
	}

	rotate(recordingKey)
	audio := []byte("the caller said something private")
	_, err := recordings.Store(t.Context(),
		recording.Upload{AccountID: "acme", RecordingID: "call", Body: bytes.NewReader(audio)})
	check(t, err)
	rotate("the second key of the recordings, later on")

	before := content(w, "master.key")
	if out := w.MustRun("masterkey", "rotate"); !strings.HasPrefix(out, "everything is sealed under master key ") {
		t.Errorf("masterkey rotate prints %q", out)
	}
	if after := content(w, "master.key"); after == before || strings.Count(after, "\n") != strings.Count(before, "\n") {
		t.Error("the key file has not changed, or has both keys")
	}
	if out := w.MustRun("recording", "reseal", "--account",
		"acme.test"); out != "1 recordings moved to the newest key\n" {
		t.Errorf("recording reseal prints %q", out)
	}

	// The running server uses the new key.
	metadata, err := recordings.Metadata(t.Context(), "acme", "call")
	check(t, err)
	opened, err := recordings.Open(context.WithoutCancel(t.Context()), "acme", "call")
	check(t, err)
	got, err := io.ReadAll(opened)
	check(t, err)
	check(t, opened.Close())

	if !bytes.Equal(got, audio) || metadata.KeyVersion != 2 {
		t.Errorf("%q, %+v", got, metadata)
	}

	check(t, os.Remove(filepath.Join(w.Dir, "master.key")))
	w.MustFail(cli.ExitUsage, "set TRUNKLINE_MASTER_KEY or bring back its key file", "recording", "reseal")
}
