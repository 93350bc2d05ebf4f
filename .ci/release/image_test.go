package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestImageIsReproducible checks that the archive depends on its input alone, and that both images in it
// have the version as their name.
func TestImageIsReproducible(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1795193647")
	folder := t.TempDir()
	write(t, filepath.Join(folder, "trunkline"), []byte("a program"))

	if err := os.MkdirAll(filepath.Join(folder, "var/lib/trunkline"), 0o700); err != nil {
		t.Fatal(err)
	}

	var archives [2][]byte
	for i := range archives {
		file := filepath.Join(t.TempDir(), "oci.tar")
		if err := run([]string{"image", "1.2.3", file, "amd64=" + folder, "arm64=" + folder}); err != nil {
			t.Fatal(err)
		}

		archive, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		archives[i] = archive
	}

	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of one input differ")
	}

	files := map[string]string{}
	reader := tar.NewReader(bytes.NewReader(archives[0]))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}

		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}

		files[header.Name] = string(content)
	}

	if files["oci-layout"] == "" {
		t.Errorf("the archive has only %v", slices.Collect(maps.Keys(files)))
	}

	name := regexp.MustCompile(`"org.opencontainers.image.ref.name":\s*"1.2.3"`)
	if named := len(name.FindAllString(files["index.json"], -1)); named != 2 {
		t.Errorf("%d of 2 images have the version as their name:\n%s", named, files["index.json"])
	}
}

func write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
