package testservice

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	sharedMemory = "/dev/shm"

	// minFreeMemory is what the tests' files (memoryFolderBytes at most, at once) and their programs need.
	minFreeMemory     = 12 << 30
	memoryFolderBytes = 6 << 30
)

// MemoryFolder creates a folder for temporary files in memory, which lasts as long as this process unless
// it is removed before: tests create and sync so many files that a disk would make them wait. It returns
// "" and why where the machine has no such memory to spare.
func MemoryFolder() (dir, unfit string, err error) {
	unfit = unfitForTests(sharedMemory)
	if unfit != "" {
		return "", unfit, nil
	}

	dir, err = newLockedFolder(sharedMemory, memoryFolderPrefix, "")
	if err != nil {
		return "", "", fmt.Errorf("making a folder in memory: %w", err)
	}
	return dir, "", os.Chmod(dir, 0o755) // PostgreSQL runs as another user than root
}

// unfitForTests returns why temporary files of tests, programs among them, cannot be in a folder in memory;
// "" if they can.
func unfitForTests(folder string) string {
	var fs unix.Statfs_t
	err := unix.Statfs(folder, &fs)
	switch {
	case err != nil:
		return fmt.Sprintf("%s: %v", folder, err)
	case fs.Type != unix.TMPFS_MAGIC:
		return folder + " is not in memory"
	case fs.Flags&unix.ST_NOEXEC != 0:
		return folder + " lets no program run"
	case fs.Bavail*uint64(fs.Bsize) < memoryFolderBytes:
		return fmt.Sprintf("%s has less than %d GiB free", folder, memoryFolderBytes>>30)
	case availableMemory() < minFreeMemory:
		return fmt.Sprintf("less than %d GiB of memory are free", minFreeMemory>>30)
	}
	return ""
}

// availableMemory returns the bytes that programs can use without swapping; 0 if the kernel does not say.
func availableMemory() uint64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()

	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var kilobytes uint64
		if strings.HasPrefix(lines.Text(), "MemAvailable:") {
			_, err := fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &kilobytes)
			if err == nil {
				return kilobytes << 10
			}
		}
	}

	return 0
}
