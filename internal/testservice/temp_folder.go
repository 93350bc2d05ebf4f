package testservice

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	folderPrefix       = "trunkline-test-service-"
	memoryFolderPrefix = "tl-tests-" // short: paths of Unix sockets below it have 107 bytes at most
)

// newFolder creates a temporary folder, locked by this process. If this test binary cannot
// remove it, the next one does.
func newFolder(service string) (string, error) {
	dir, err := newLockedFolder(os.TempDir(), folderPrefix, service+"-")
	if err != nil {
		return "", fmt.Errorf("the folder for %s: %w", service, err)
	}
	return dir, nil
}

// newLockedFolder creates a folder whose name begins with prefix and kind, and removes those with the
// prefix whose processes have ended.
func newLockedFolder(parent, prefix, kind string) (string, error) {
	removeStaleFolders(parent, prefix)

	// Locked before it has its name, so that no other process finds it unlocked.
	unnamed, err := os.MkdirTemp(parent, "new-"+prefix+kind)
	if err != nil {
		return "", err
	}

	_, err = lockFolder(unnamed)
	if err != nil {
		return "", err
	}

	dir := filepath.Join(parent, strings.TrimPrefix(filepath.Base(unnamed), "new-"))
	return dir, os.Rename(unnamed, dir)
}

// removeStaleFolders removes the folders of ended processes: their locks ended with them, also
// where this process does not see the pids of others.
func removeStaleFolders(parent, prefix string) {
	folders, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		fmt.Fprintf(os.Stderr, "testservice: looking for folders left behind: %v\n", err)
	}

	for _, dir := range folders {
		lock, err := lockFolder(dir)
		if err != nil {
			continue // in use, or of another user
		}

		if err := os.RemoveAll(dir); err != nil {
			fmt.Fprintf(os.Stderr, "testservice: removing a folder left behind: %v\n", err)
		}

		_ = unix.Close(lock)
	}
}

// lockFolder locks a folder until the descriptor is closed or this process ends: the programs
// that it starts do not inherit it.
func lockFolder(dir string) (descriptor int, err error) {
	descriptor, err = unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	if err := unix.Flock(descriptor, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = unix.Close(descriptor)
		return -1, &os.PathError{Op: "flock", Path: dir, Err: err}
	}
	return descriptor, nil
}
