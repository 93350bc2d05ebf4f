package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"trunkline/internal/fault"
)

// lockDir locks the directory for this process until the file is closed or the process
// ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the data directory: %w", err)
	}

	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fault.Conflict("another trunkline uses this data directory (%s)", dir), f.Close())
	}

	return nil, errors.Join(fmt.Errorf("locking the data directory: %w", err), f.Close())
}
