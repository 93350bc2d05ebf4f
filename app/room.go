package app

import (
	"errors"
	"fmt"
	"syscall"
)

const (
	startRoom = 1 << 20  // what a start writes at least
	lowRoom   = 64 << 20 // below it writes may be refused any moment
)

// room is what is left of a disk, in bytes.
type room struct{ free, size uint64 }

func roomIn(dir string) (room, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return room{}, fmt.Errorf("looking at the disk of %s: %w", dir, err)
	}
	return room{free: fs.Bavail * uint64(fs.Bsize), size: fs.Blocks * uint64(fs.Bsize)}, nil
}

// low says whether the disk is as good as full; of a small one less is enough.
func (r room) low() bool { return r.free < min(lowRoom, r.size/50) }

func (r room) String() string {
	return fmt.Sprintf("%d of %d MiB are free", r.free>>20, r.size>>20)
}

// full says whether a write failed for want of room.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
