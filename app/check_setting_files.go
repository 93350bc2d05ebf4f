package app

import (
	"errors"
	"syscall"

	"trunkline/app/backend"
	"trunkline/internal/setting"
	"trunkline/settings"
)

// checkFiles reads every file named in the settings before anything is opened, created or changed,
// so that all problems are reported at once. Its error is setting.Problems, on which a supervisor
// does not start the program again.
func checkFiles(s *settings.Settings) error {
	var problems setting.Problems
	addProblem := func(key string, err error) {
		if err != nil {
			problems = append(problems, setting.Problem{Key: key, Text: err.Error()})
		}
	}

	for _, f := range s.Files() {
		addProblem(f.Setting, f.Check())
	}

	if len(problems) == 0 { // else a file would be reported twice
		_, err := backend.MasterKeys(s)
		if errors.Is(err, syscall.ENOTDIR) && s.MasterKeys.File == "" {
			err = nil // data_dir itself is wrong: its preparation says so
		}

		key := "master_key"
		if s.MasterKeys.Value == "" {
			key = "master_key_file"
		}

		addProblem(key, err)
	}

	if problems != nil {
		return problems
	}

	return nil
}
