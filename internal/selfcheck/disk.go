package selfcheck

import (
	"errors"
	"fmt"
	"syscall"
)

// Space is the space of a disk, in bytes.
type Space struct{ Free, Size uint64 }

// SpaceOf returns the space of the disk that dir is on.
func SpaceOf(dir string) (Space, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return Space{}, fmt.Errorf("reading the free space of %s: %w", dir, err)
	}
	return Space{Free: fs.Bavail * uint64(fs.Bsize), Size: fs.Blocks * uint64(fs.Bsize)}, nil
}

// Below reports whether fewer than floor bytes are free. Of a disk smaller than 50
// times that, 2 % have to be free.
func (s Space) Below(floor uint64) bool { return s.Free < min(floor, s.Size/50) }

func (s Space) String() string { return fmt.Sprintf("%d of %d MiB are free", s.Free>>20, s.Size>>20) }

// DiskFull reports whether a write failed because its disk is full.
func DiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

const diskSubject = "disk"

func (c *Checker) checkDisk() {
	if c.cfg.DataDir == "" {
		return
	}
	space, err := SpaceOf(c.cfg.DataDir)
	if err == nil {
		c.metrics.free.Set(float64(space.Free))
		c.metrics.size.Set(float64(space.Size))
		if space.Below(c.cfg.MinFree) {
			err = errors.New(space.String())
		}
	}
	c.metrics.setUp(diskSubject, err == nil)
	if c.recordHealth(diskSubject, err == nil) {
		c.log.Warn("the disk is full: free space on the disk of data_dir, writing then resumes", "error", OneLine(err))
	}
}
