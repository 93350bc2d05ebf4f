package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

var migrationName = regexp.MustCompile(`^([0-9]{4})_[a-z0-9_]+(?:\.(postgres|sqlite))?\.sql$`)

// Two branches that add a migration with the same number merge without a conflict.
func TestMigrationsHaveNumbersOfTheirOwn(t *testing.T) {
	folders := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}

		if entry.Name() == ".git" || entry.Name() == "node_modules" {
			return fs.SkipDir
		}
		if entry.Name() != "migrations" {
			return nil
		}

		folders++
		files, err := os.ReadDir(path)
		if err != nil {
			return err
		}

		next := map[string]int{"postgres": 1, "sqlite": 1}
		for _, file := range files { // sorted by name
			match := migrationName.FindStringSubmatch(file.Name())
			if match == nil {
				t.Errorf("%s/%s is not named like a migration", path, file.Name())
				continue
			}

			number, err := strconv.Atoi(match[1])
			if err != nil {
				return err
			}

			for database := range next {
				if match[2] != "" && match[2] != database {
					continue
				}
				if number != next[database] {
					t.Errorf("%s/%s: the next number is %04d", path, file.Name(), next[database])
				}

				next[database] = number + 1
			}
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	if folders < 8 {
		t.Errorf("only %d folders were found", folders)
	}
}
