package testservice

import (
	"errors"
	"os"
	"os/exec"
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

	removeStaleFolders(parent, folderPrefix)
	if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there (%v)", gone, err)
	}

	for _, dir := range kept {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}

func TestAFolderInMemoryIsOneThatTestsCanUse(t *testing.T) {
	dir, unfit, err := MemoryFolder()
	if err != nil {
		t.Fatal(err)
	}
	if unfit != "" {
		t.Skip("this machine has none: ", unfit)
	}
	defer os.RemoveAll(dir)

	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho runs\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil || string(out) != "runs\n" {
		t.Errorf("a program in it: %s %v", out, err)
	}

	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o755 {
		t.Errorf("%v: PostgreSQL cannot reach its folder", info.Mode())
	}
}

func TestTestsDoNotUseWhatIsNotMemory(t *testing.T) {
	for _, folder := range []string{"/proc", "/nowhere"} {
		if unfitForTests(folder) == "" {
			t.Errorf("%s would be used", folder)
		}
	}
}
