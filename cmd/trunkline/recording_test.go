package main

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
	"trunkline/config/encryption"
	"trunkline/recording"
)

const (
	recordingKey  = "the key of the recordings of this test"
	recordingSalt = "c2FsdCBvZiB0aGlzIHRlc3Q="
)

// file writes a file of the world and gives its path.
func (w *world) file(name, content string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) content(name string) string {
	w.t.Helper()
	content, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(content)
}

func TestRecordingsOffline(t *testing.T) {
	w := newWorld(t)
	audio := strings.Repeat("the caller said something private. ", 4000)
	call := w.file("call.wav", audio)
	sealed, opened, moved := filepath.Join(w.dir, "call.trkrec"), filepath.Join(w.dir, "opened.wav"), filepath.Join(w.dir, "moved.trkrec")
	w.must("recording", "seal", call, "--account", "acme-call-center", "--recording", "call-1", "--key", recordingKey,
		"--salt", recordingSalt, "--algorithm", "AES-256-CBC", "--output", sealed)
	if text := w.content("call.trkrec"); strings.Contains(text, "private") {
		t.Error("it can be read")
	}
	var told recording.Inspection
	w.list(&told, "recording", "inspect", sealed)
	if told.AccountID != "acme-call-center" || told.RecordingID != "call-1" || told.KeyID != "key_auto_acme-cal" || told.KeyVersion != 1 || told.Algorithm != "AES-256-CBC" {
		t.Errorf("%+v", told)
	}
	keys := []string{"--key-file", w.file("key", recordingKey+"\n"), "--salt-file", w.file("salt", recordingSalt)}
	if out := w.must(append([]string{"recording", "open", sealed}, keys...)...); out != audio {
		t.Errorf("%d bytes on stdout", len(out))
	}
	w.env = []string{"TRUNKLINE_RECORDING_KEY=" + recordingKey, "TRUNKLINE_RECORDING_SALT=" + recordingSalt}
	w.must("recording", "open", sealed, "--output", opened)
	if w.content("opened.wav") != audio {
		t.Error("another audio")
	}
	w.must("recording", "reseal", sealed, "--new-key", "another key, that came after the first", "--new-salt", "s", "--output", moved)
	w.list(&told, "recording", "inspect", moved)
	if told.KeyVersion != 2 || told.KeyID != "key_auto_acme-cal" {
		t.Errorf("moved: %+v", told)
	}
	w.fails(exitFailed, "opening "+moved+": not the salt", "recording", "open", moved)
	w.in = w.content("moved.trkrec")
	if out := w.must("recording", "open", "-", "--key", "another key, that came after the first", "--salt", "s"); out != audio {
		t.Errorf("from stdin come %d bytes", len(out))
	}
	w.fails(exitFailed, "not the key", "recording", "open", sealed, "--key", "a wrong key")

	// What fails half-way leaves the output as it was, and no other file.
	w.file("cut.trkrec", w.content("call.trkrec")[:70_000])
	w.file("opened.wav", "as it was")
	w.fails(exitFailed, "chunk 1: ", "recording", "open", filepath.Join(w.dir, "cut.trkrec"), "--output", opened)
	if w.content("opened.wav") != "as it was" {
		t.Error("the output was changed")
	}
	if beside, err := filepath.Glob(filepath.Join(w.dir, ".*")); err != nil || len(beside) != 0 {
		t.Errorf("left: %v, %v", beside, err)
	}
	w.fails(exitFailed, "opening "+call+": not a sealed recording", "recording", "open", call)
}

func TestRecordingsWrongUsage(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		want string
		args []string
	}{
		{"recording open needs FILE", []string{"recording", "open"}},
		{"the key is missing: give --key or --key-file, or set TRUNKLINE_RECORDING_KEY", []string{"recording", "open", "f"}},
		{"give --key or --key-file, not both", []string{"recording", "open", "f", "--key", "k", "--key-file", "f"}},
		{"the salt is missing: ", []string{"recording", "open", "f", "--key", "k"}},
		{"the new-key is missing: give --new-key or --new-key-file, or set TRUNKLINE_RECORDING_NEW_KEY", []string{"recording", "reseal", "f", "--key", "k", "--salt", "s"}},
		{"recording seal needs --account", []string{"recording", "seal", "f"}},
		{`recording reseal does not take "g"`, []string{"recording", "reseal", "f", "g"}},
		{"--account is for the service's recordings", []string{"recording", "reseal", "f", "--account", "a"}},
		{"masterkey needs a command, one of rotate", []string{"masterkey"}},
	} {
		w.fails(exitUsage, c.want, c.args...)
	}
	w.fails(exitFailed, "no such file", "recording", "open", filepath.Join(w.dir, "none"), "--key", "k", "--salt", "s")
	w.fails(exitFailed, "there is no account nobody", "recording", "reseal", "--account", "nobody")
	w.fails(exitFailed, "the master key is not available", "masterkey", "rotate")
}

// service opens what a server on the world's data directory has.
func (w *world) service() (*encryption.Service, *recording.Service) {
	w.t.Helper()
	p := &program{err: io.Discard, env: []string{"TRUNKLINE_DATA_DIR=" + w.dir}}
	s, err := p.settings()
	check(w.t, err)
	db, err := backend.Database(w.t.Context(), s, p.toolLog())
	check(w.t, err)
	w.t.Cleanup(func() { check(w.t, db.Close()) })
	keys, err := backend.MasterKeys(s)
	check(w.t, err)
	_, err = keys.Create()
	check(w.t, err)
	configs, err := encryption.New(w.t.Context(), db, keys, prometheus.NewRegistry())
	check(w.t, err)
	store, closeStore, err := backend.Recordings(s, p.toolLog())
	check(w.t, err)
	w.t.Cleanup(func() { check(w.t, closeStore()) })
	recordings, err := recording.New(w.t.Context(), recording.Config{}, recording.Deps{
		DB: db, Store: store, Keys: configs, Metrics: prometheus.NewRegistry(), Log: p.toolLog(),
	})
	check(w.t, err)
	return configs, recordings
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestKeysAreRotatedAndRecordingsMovedBesideAServer(t *testing.T) {
	w := newWorld(t)
	w.must("account", "create", "Acme", "--id", "acme", "--domain", "acme.test")
	configs, recordings := w.service()
	rotate := func(key string) {
		_, err := configs.Put(t.Context(), "user:test", "acme", encryption.Change{Enabled: true, Key: &key}, "")
		check(t, err)
	}
	rotate(recordingKey)
	audio := []byte("the caller said something private")
	_, err := recordings.Store(t.Context(), recording.Upload{AccountID: "acme", RecordingID: "call", Body: bytes.NewReader(audio)})
	check(t, err)
	rotate("the second key of the recordings, later on")

	before := w.content("master.key")
	if out := w.must("masterkey", "rotate"); !strings.HasPrefix(out, "everything is sealed under master key ") {
		t.Errorf("masterkey rotate prints %q", out)
	}
	if after := w.content("master.key"); after == before || strings.Count(after, "\n") != strings.Count(before, "\n") {
		t.Error("the key file has not changed, or has both keys")
	}
	if out := w.must("recording", "reseal", "--account", "acme.test"); out != "1 recordings moved to the newest key\n" {
		t.Errorf("recording reseal prints %q", out)
	}
	// The server that ran all the while follows.
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
	check(t, os.Remove(filepath.Join(w.dir, "master.key")))
	w.fails(exitUsage, "set TRUNKLINE_MASTER_KEY or bring back its key file", "recording", "reseal")
}
