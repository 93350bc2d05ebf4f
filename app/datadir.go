package app

import (
	"errors"
	"fmt"
	"os"

	"trunkline/internal/fault"
	"trunkline/internal/selfcheck"
	"trunkline/internal/setting"
)

// minStartBytes is the minimum number of bytes that a start writes.
const minStartBytes = 1 << 20

// ensureDataDir creates data_dir and checks that it is writable and that minFree
// bytes are free.
func ensureDataDir(dir string, minFree setting.Bytes) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		if selfcheck.DiskFull(err) {
			return fmt.Errorf("data_dir: %w", err)
		}
		return fault.Permanent(fmt.Errorf("data_dir: %w (name a directory that this user may write to)", err))
	}
	// An existing directory may belong to another user.
	probe, err := os.CreateTemp(dir, ".probe-*")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil && !selfcheck.DiskFull(err) {
		return fault.Permanent(fmt.Errorf("data_dir: %w (name a directory that this user may write to)", err))
	}
	space, err := selfcheck.SpaceOf(dir)
	if err != nil {
		return fmt.Errorf("data_dir: %w", err)
	}
	if space.Free < minStartBytes {
		return fmt.Errorf("data_dir: the disk of %s is full, %s: free space there; stored data is not lost", dir, space)
	}
	if space.Below(uint64(minFree)) {
		return fmt.Errorf("data_dir: %s on the disk of %s, disk_min_free is %s: free space there, or lower disk_min_free", space, dir, minFree)
	}
	return nil
}

// checkDisk returns an error when less than disk_min_free is free for data_dir.
func (a *App) checkDisk() error {
	space, err := selfcheck.SpaceOf(a.settings.DataDir)
	if err != nil {
		return err
	}
	if space.Below(uint64(a.settings.DiskMinFree)) {
		return fmt.Errorf("%s on the disk of data_dir, disk_min_free is %s", space, a.settings.DiskMinFree)
	}
	return nil
}
