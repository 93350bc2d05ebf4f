package load

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// RaiseFileLimit raises this process's limit of open files to need, or as far as permitted.
func RaiseFileLimit(need uint64) error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("reading the limit of open files: %w", err)
	}
	if limit.Cur >= need {
		return nil
	}

	hard := limit.Max
	limit.Cur, limit.Max = need, max(need, hard)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf(
			"%d open files are needed and %d are allowed: raise the limit (ulimit -Hn %[1]d as root) or start several benches: %[3]w",
			need, hard, err)
	}

	return nil
}
