package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFileIsReplacedWithItsMode(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"here", filepath.Join(t.TempDir(), "there")} {
		for _, content := range []string{"old", "new"} {
			if err := WriteBytes(name, 0o644, []byte(content)); err != nil {
				t.Fatal(err)
			}
			if is, _ := os.ReadFile(name); string(is) != content {
				t.Errorf("%s has %q, want %q", name, is, content)
			}
		}

		if info, err := os.Stat(name); err != nil || info.Mode() != 0o644 {
			t.Errorf("%v, %v", info.Mode(), err)
		}

		alone(t, name)
	}
}

func TestAnErrorLeavesTheFileAsItWas(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := WriteBytes(name, 0o600, []byte("old")); err != nil {
		t.Fatal(err)
	}

	full := errors.New("no space left")
	err := Write(name, 0o600, func(w io.Writer) error {
		_, err := io.WriteString(w, "half of")
		return errors.Join(err, full)
	})
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}

	if is, _ := os.ReadFile(name); string(is) != "old" {
		t.Errorf("the file has %q", is)
	}

	alone(t, name)

	below := filepath.Join(name, "f")
	if err := WriteBytes(below, 0o600, nil); err == nil || !strings.Contains(err.Error(), "writing "+below) {
		t.Errorf("got %v", err)
	}
}

// alone fails if there are other files beside the file.
func alone(t *testing.T, name string) {
	t.Helper()
	if files, err := os.ReadDir(filepath.Clean(filepath.Dir(name))); err != nil || len(files) != 1 {
		t.Errorf("files: %v, %v", files, err)
	}
}
