package dashboards_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"trunkline/deploy/dashboards"
)

var update = flag.Bool("update", false, "write the JSON files")

// folder holds the files. They are in the chart, whose files cannot be links.
const folder = "../helm/trunkline/files/dashboards"

// TestFiles checks that the JSON files are up to date with this package.
func TestFiles(t *testing.T) {
	wanted := map[string]bool{}
	for _, d := range dashboards.All() {
		file := filepath.Join(folder, d.Name+".json")
		wanted[file] = true
		made, err := d.JSON()
		if err != nil {
			t.Fatal(err)
		}

		if *update {
			if err := os.WriteFile(file, made, 0o644); err != nil {
				t.Fatal(err)
			}
		}

		kept, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(kept, made) {
			t.Errorf("%s is not what this package makes: go test ./deploy/dashboards -update", file)
		}
	}

	found, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}

	for _, file := range found {
		if !wanted[file] {
			t.Errorf("%s is made from nothing", file)
		}
	}
}
