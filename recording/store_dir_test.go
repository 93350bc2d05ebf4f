package recording

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestABrokenFileLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	d := must(OpenDir(dir))(t)
	defer func() { check(t, d.Close()) }()

	broken := errors.New("broken")
	if _, err := d.Put(t.Context(), "acme/a", func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	if left := must(os.ReadDir(filepath.Join(dir, unfinishedDir)))(t); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestNamesCannotLeaveTheDirectory(t *testing.T) {
	outside := t.TempDir()
	d := must(OpenDir(filepath.Join(outside, "store")))(t)
	defer func() { check(t, d.Close()) }()

	check(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600))
	for _, name := range []string{"../secret", "acme/../../secret", "/etc/passwd"} {
		if f, err := d.Open(t.Context(), name); err == nil {
			t.Errorf("opened %s", name)
			check(t, f.Close())
		}
		if _, err := d.Put(t.Context(), name, func(io.Writer) error { return nil }); err == nil {
			t.Errorf("wrote %s", name)
		}
	}
}

func TestOpenDirRemovesOnlyAbandonedFiles(t *testing.T) {
	dir := t.TempDir()
	check(t, must(OpenDir(dir))(t).Close())

	fresh, old := filepath.Join(dir, unfinishedDir, "fresh"), filepath.Join(dir, unfinishedDir, "old")
	for _, file := range []string{fresh, old} {
		check(t, os.WriteFile(file, []byte("x"), 0o600))
	}

	past := time.Now().Add(-2 * unfinishedAge)
	check(t, os.Chtimes(old, past, past))
	check(t, must(OpenDir(dir))(t).Close())

	if _, err := os.Stat(old); err == nil {
		t.Error("the abandoned file is still there")
	}

	checkError(t)(os.Stat(fresh))
}

// A process killed in the middle of an upload leaves no visible object and, of a sealed
// recording, no plain text.
func TestACrashLeavesNoHalfObjectAndNoPlaintext(t *testing.T) {
	if os.Getenv("RECORDING_CRASH_DB") != "" {
		runCrashingChild(t)
		return
	}

	h := newEnv(t, Settings{}, sqldb.Config{Path: filepath.Join(t.TempDir(), "t.db")})
	h.configure(t, "acme", encryption.Change{Enabled: true, Key: new(firstKey)})
	sealing := must(h.config.Current(t.Context(), "acme"))(t)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestACrashLeaves")
	child.Env = append(os.Environ(), "RECORDING_CRASH_DB="+h.dir,
		"RECORDING_CRASH_KEY="+sealing.Key.Key+" "+sealing.Key.Salt)
	out := must(child.StdoutPipe())(t)
	check(t, child.Start())
	line := make([]byte, 7)
	checkError(t)(io.ReadFull(out, line))
	check(t, child.Process.Kill())

	if child.Wait() == nil || string(line) != "halfway" {
		t.Fatalf("the child said %q", line)
	}

	objects := h.objects(t)
	if len(objects) != 1 || !strings.Contains(objects[0], unfinishedDir) {
		t.Fatalf("objects %v", objects)
	}

	left := must(os.ReadFile(objects[0]))(t)
	if len(left) < 1<<20 || bytes.Contains(left, []byte("private")) {
		t.Errorf("%d bytes are left, in plain: %v", len(left), bytes.Contains(left, []byte("private")))
	}
	if _, err := h.play("acme", "call-1"); fault.KindOf(err) != fault.KindNotFound {
		t.Error(err)
	}

	checkError(t)(h.storeAudio("acme", "call-1", testAudio(100)))
}

// fixedKeys is the encryption configuration of the child process, which has no access to
// the parent's database.
type fixedKeys struct{ encryption.Sealing }

func (k fixedKeys) Current(context.Context, string) (encryption.Sealing, error) {
	return k.Sealing, nil
}
func (k fixedKeys) Key(context.Context, string, int64) (encryption.Key, error) {
	return k.Sealing.Key, nil
}

func runCrashingChild(t *testing.T) {
	h := newEnv(t, Settings{}, testdb.SQLite(t))
	key, salt, _ := strings.Cut(os.Getenv("RECORDING_CRASH_KEY"), " ")
	h.Service.seals.keys = fixedKeys{encryption.Sealing{Enabled: true, Algorithm: encryption.AES256GCM,
		Key: encryption.Key{ID: "key_auto_acme", Version: 1, Key: key, Salt: salt}}}

	if at := os.Getenv("RECORDING_CRASH_S3"); at != "" {
		h.Service.objects.store = crashingS3(t, at)
		_, err := h.storeAudio("acme", "call-1", testAudio(12<<20))
		t.Fatal("not killed", err)
	}

	h.Service.objects.store = must(OpenDir(os.Getenv("RECORDING_CRASH_DB")))(t)
	body := io.MultiReader(bytes.NewReader(testAudio(2<<20)), readerFunc(func([]byte) (int, error) {
		fmt.Print("halfway")
		select {}
	}))

	_, err := h.Store(t.Context(), Upload{AccountID: "acme", RecordingID: "call-1", Body: body})
	t.Fatal("not killed", err)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
