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
	"github.com/spf13/cobra"

	"trunkline/app/backend"
	"trunkline/audit/audittest"
	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/cmd/trunkline/directory"
	"trunkline/cmd/trunkline/masterkey"
	"trunkline/config/encryption"
	"trunkline/recording"
)

func newEnv(t *testing.T) *clitest.Env {
	return clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{Command(p), masterkey.Command(p), directory.AccountCommand(p), directory.UserCommand(p),
			directory.APIKeyCommand(p)}
	})
}

const (
	recordingKey  = "the key of the recordings of this test"
	recordingSalt = "c2FsdCBvZiB0aGlzIHRlc3Q="
)

// file writes a file to the clitest.Env and returns its path.
func file(w *clitest.Env, name, content string) string {
	w.T.Helper()
	path := filepath.Join(w.Dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.T.Fatal(err)
	}
	return path
}

func content(w *clitest.Env, name string) string {
	w.T.Helper()
	content, err := os.ReadFile(filepath.Join(w.Dir, name))
	if err != nil {
		w.T.Fatal(err)
	}
	return string(content)
}

func TestRecordingsOffline(t *testing.T) {
	w := newEnv(t)
	audio := strings.Repeat("the caller said something private. ", 4000)
	call := file(w, "call.wav", audio)
	sealed, opened, moved := filepath.Join(w.Dir, "call.trkrec"), filepath.Join(w.Dir,
		"opened.wav"), filepath.Join(w.Dir, "moved.trkrec")
	w.MustRun("recording", "seal", call, "--account", "acme-call-center", "--recording", "call-1", "--key",
		recordingKey,
		"--salt", recordingSalt, "--algorithm", "AES-256-CBC", "--output", sealed)

	if text := content(w, "call.trkrec"); strings.Contains(text, "private") {
		t.Error("it can be read")
	}

	var inspection recording.Inspection
	w.MustJSON(&inspection, "recording", "inspect", sealed)
	if inspection.AccountID != "acme-call-center" || inspection.RecordingID != "call-1" ||
		inspection.KeyID != "key_auto_acme-cal" || inspection.KeyVersion != 1 || inspection.Algorithm != "AES-256-CBC" {
		t.Errorf("%+v", inspection)
	}

	keys := []string{"--key-file", file(w, "key", recordingKey+"\n"), "--salt-file", file(w, "salt", recordingSalt)}
	if out := w.MustRun(append([]string{"recording", "open", sealed}, keys...)...); out != audio {
		t.Errorf("%d bytes on stdout", len(out))
	}

	w.Environ = []string{"TRUNKLINE_RECORDING_KEY=" + recordingKey, "TRUNKLINE_RECORDING_SALT=" + recordingSalt}
	w.MustRun("recording", "open", sealed, "--output", opened)
	if content(w, "opened.wav") != audio {
		t.Error("another audio")
	}

	w.MustRun("recording", "reseal", sealed, "--new-key", "another key, that came after the first", "--new-salt", "s",
		"--output", moved)
	w.MustJSON(&inspection, "recording", "inspect", moved)

	if inspection.KeyVersion != 2 || inspection.KeyID != "key_auto_acme-cal" {
		t.Errorf("moved: %+v", inspection)
	}

	w.MustFail(cli.ExitFailed, "opening "+moved+": not the salt", "recording", "open", moved)
	w.Stdin = content(w, "moved.trkrec")
	if out := w.MustRun("recording", "open", "-", "--key", "another key, that came after the first", "--salt",
		"s"); out != audio {
		t.Errorf("from stdin come %d bytes", len(out))
	}

	w.MustFail(cli.ExitFailed, "not the key", "recording", "open", sealed, "--key", "a wrong key")

	// A command that fails leaves the output unchanged and no other file.
	file(w, "cut.trkrec", content(w, "call.trkrec")[:70_000])
	file(w, "opened.wav", "as it was")
	w.MustFail(cli.ExitFailed, "chunk 1: ", "recording", "open", filepath.Join(w.Dir, "cut.trkrec"), "--output", opened)

	if content(w, "opened.wav") != "as it was" {
		t.Error("the output was changed")
	}
	if beside, err := filepath.Glob(filepath.Join(w.Dir, ".*")); err != nil || len(beside) != 0 {
		t.Errorf("left: %v, %v", beside, err)
	}

	w.MustFail(cli.ExitFailed, "opening "+call+": not a sealed recording", "recording", "open", call)
}

func TestRecordingsWrongUsage(t *testing.T) {
	w := newEnv(t)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"recording open needs FILE", []string{"recording", "open"}},
		{"the key is missing: give --key or --key-file, or set TRUNKLINE_RECORDING_KEY",
			[]string{"recording", "open", "f"}},
		{"give --key or --key-file, not both", []string{"recording", "open", "f", "--key", "k", "--key-file", "f"}},
		{"the salt is missing: ", []string{"recording", "open", "f", "--key", "k"}},
		{"the new-key is missing: give --new-key or --new-key-file, or set TRUNKLINE_RECORDING_NEW_KEY",
			[]string{"recording", "reseal", "f", "--key", "k", "--salt", "s"}},
		{"recording seal needs --account", []string{"recording", "seal", "f"}},
		{`recording reseal does not take "g"`, []string{"recording", "reseal", "f", "g"}},
		{"--account is for the service's recordings", []string{"recording", "reseal", "f", "--account", "a"}},
		{"masterkey needs a command, one of rotate", []string{"masterkey"}},
	} {
		w.MustFail(cli.ExitUsage, c.want, c.args...)
	}

	w.MustFail(cli.ExitFailed, "no such file", "recording", "open", filepath.Join(w.Dir, "none"), "--key", "k",
		"--salt", "s")
	w.MustRun("account", "create", "head", "--domain", "head.example")
	w.MustFail(cli.ExitFailed, "there is no account nobody", "recording", "reseal", "--account", "nobody")
	w.MustFail(cli.ExitFailed, "the master key is not available", "masterkey", "rotate")
}

// service opens the recordings of a server on the clitest.Env's data directory.
func service(w *clitest.Env) (*encryption.Service, *recording.Service) {
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

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestKeysAreRotatedAndRecordingsMovedBesideAServer(t *testing.T) {
	w := newEnv(t)
	w.MustRun("account", "create", "Acme", "--id", "acme", "--domain", "acme.test")

	configs, recordings := service(w)
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
