package selfcheck

import (
	"errors"
	"fmt"
	"syscall"
)

// diskSpace is the space of a disk, in bytes.
type diskSpace struct{ Free, Size uint64 }

// diskSpaceOf returns the space of the disk that dir is on.
func diskSpaceOf(dir string) (diskSpace, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return diskSpace{}, fmt.Errorf("reading the free space of %s: %w", dir, err)
	}
	return diskSpace{Free: fs.Bavail * uint64(fs.Bsize), Size: fs.Blocks * uint64(fs.Bsize)}, nil
}

// below reports whether fewer than floor bytes are free. Of a disk smaller than 50
// times that, 2 % have to be free.
func (s diskSpace) below(floor uint64) bool { return s.Free < min(floor, s.Size/50) }

// String returns the free space and the size in MiB.
func (s diskSpace) String() string {
	return fmt.Sprintf("%d of %d MiB are free", s.Free>>20, s.Size>>20)
}

// diskFull reports whether a write failed because its disk is full.
func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

const diskSubject = "disk"

func (c *Checker) checkDisk() {
	if c.cfg.DataDir.Path == "" {
		return
	}

	disk, err := diskSpaceOf(c.cfg.DataDir.Path)
	if err == nil {
		c.metrics.free.Set(float64(disk.Free))
		c.metrics.size.Set(float64(disk.Size))
		if disk.below(uint64(c.cfg.DataDir.MinFree)) {
			err = errors.New(disk.String())
		}
	}

	c.metrics.setUp(diskSubject, err == nil)
	if c.recordHealth(diskSubject, err == nil) {
		c.log.Warn("the disk is full: free space on the disk of data_dir, writing then resumes", "error", OneLine(err))
	}
}
