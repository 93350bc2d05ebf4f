package selfcheck

import (
	"errors"
	"fmt"
	"os"

	"trunkline/internal/fault"
	"trunkline/internal/setting"
)

// DataDir is the setting data_dir, with the free space that its disk should have.
type DataDir struct {
	Path    string
	MinFree setting.Bytes // setting disk_min_free; 0: no minimum
}

// minStartBytes is the minimum number of bytes that a start writes.
const minStartBytes = 1 << 20

// Prepare creates the directory and checks that it is writable and that MinFree bytes are free.
func (d DataDir) Prepare() error {
	if err := os.MkdirAll(d.Path, 0o700); err != nil {
		if diskFull(err) {
			return fmt.Errorf("data_dir: %w", err)
		}
		return fault.Permanent(fmt.Errorf("data_dir: %w (name a directory that this user may write to)", err))
	}

	// An existing directory may belong to another user.
	probe, err := os.CreateTemp(d.Path, ".probe-*")
	if err == nil {
		err = errors.Join(probe.Close(), os.Remove(probe.Name()))
	}
	if err != nil && !diskFull(err) {
		return fault.Permanent(fmt.Errorf("data_dir: %w (name a directory that this user may write to)", err))
	}

	// A full disk was no error so far: its message below says more than that of the failed write.
	disk, err := diskSpaceOf(d.Path)
	if err != nil {
		return fmt.Errorf("data_dir: %w", err)
	}

	if disk.Free < minStartBytes {
		return fmt.Errorf("data_dir: the disk of %s is full, %s: free space there; stored data is not lost", d.Path,
			disk)
	}

	if disk.below(uint64(d.MinFree)) {
		return fmt.Errorf(
			"data_dir: %s on the disk of %s, disk_min_free is %s: free space there, or lower disk_min_free", disk,
			d.Path, d.MinFree)
	}

	return nil
}

// CheckSpace returns an error when less than MinFree is free.
func (d DataDir) CheckSpace() error {
	disk, err := diskSpaceOf(d.Path)
	if err != nil {
		return err
	}
	if disk.below(uint64(d.MinFree)) {
		return fmt.Errorf("%s on the disk of data_dir, disk_min_free is %s", disk, d.MinFree)
	}
	return nil
}
