package testservice

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const folderPrefix = "trunkline-test-"

// newFolder creates a temporary folder, named after this process. If this test binary cannot
// remove it, the next one does.
func newFolder(service string) (string, error) {
	removeStaleFolders(os.TempDir())
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-%s-", folderPrefix, os.Getpid(), service))
	if err != nil {
		return "", fmt.Errorf("making a folder for %s: %w", service, err)
	}
	return dir, nil
}

// removeStaleFolders removes the folders of ended processes. A reused pid, or a folder of another user, only
// delays that.
func removeStaleFolders(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		fmt.Fprintf(os.Stderr, "testservice: looking for folders left behind: %v\n", err)
	}
	for _, entry := range entries {
		rest, hasPrefix := strings.CutPrefix(entry.Name(), folderPrefix)
		owner, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(owner)
		if !hasPrefix || err != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(parent, entry.Name())); err != nil {
			fmt.Fprintf(os.Stderr, "testservice: removing a folder left behind: %v\n", err)
		}
	}
}
