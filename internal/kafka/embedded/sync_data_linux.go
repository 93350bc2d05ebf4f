package embedded

import (
	"errors"
	"os"
	"syscall"
)

// syncData syncs a file without its times, which spares a commit of the file system's journal
// if the file was overwritten in place.
func syncData(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
	}
}
