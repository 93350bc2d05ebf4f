package testservice

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestSweepRemovesOnlyFoldersOfProgramsThatAreGone(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TMPDIR", parent)
	used, err := newFolder("redis")
	if err != nil {
		t.Fatal(err)
	}

	gone := filepath.Join(parent, folderPrefix+"redis-1")
	kept := []string{used, filepath.Join(parent, "trunkline-test-other"), filepath.Join(parent, "redis-1")}
	for _, dir := range append(kept, gone) {
		if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
			t.Fatal(err)
		}
	}

	removeStaleFolders(parent)
	if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there (%v)", gone, err)
	}

	for _, dir := range kept {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}
