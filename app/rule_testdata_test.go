package app_test

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two tests that need the same capture read one file.
func TestNoFileOfTestdataIsThereTwice(t *testing.T) {
	const smallest = 1 << 10 // bytes; small files may be equal by chance
	found := map[[sha256.Size]byte]string{}

	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == ".git" || name == "data" || name == "node_modules" || name == "bin" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.Contains(path, "/testdata/") {
			return nil
		}

		content, err := os.ReadFile(path)
		if err != nil || len(content) < smallest {
			return err
		}
		sum := sha256.Sum256(content)
		if first, ok := found[sum]; ok {
			t.Errorf("%s has the content of %s", path, first)
		}
		found[sum] = path
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 50 {
		t.Errorf("%d files of testdata, want those of the repository", len(found))
	}
}
