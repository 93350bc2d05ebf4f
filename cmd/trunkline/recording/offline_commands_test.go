package recording

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/cmd/trunkline/directory"
	"trunkline/cmd/trunkline/masterkey"
	"trunkline/recording"
)

func newRunner(t *testing.T) *clitest.Runner {
	return clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{Command(p), masterkey.Command(p), directory.AccountCommand(p), directory.UserCommand(p),
			directory.APIKeyCommand(p)}
	})
}

const (
	recordingKey  = "the key of the recordings of this test"
	recordingSalt = "c2FsdCBvZiB0aGlzIHRlc3Q="
)

// file writes a file to the data directory and returns its path.
func file(w *clitest.Runner, name, content string) string {
	w.T.Helper()
	path := filepath.Join(w.Dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.T.Fatal(err)
	}
	return path
}

func content(w *clitest.Runner, name string) string {
	w.T.Helper()
	content, err := os.ReadFile(filepath.Join(w.Dir, name))
	if err != nil {
		w.T.Fatal(err)
	}
	return string(content)
}

func TestRecordingsOffline(t *testing.T) {
	w := newRunner(t)
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
	w := newRunner(t)
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

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
