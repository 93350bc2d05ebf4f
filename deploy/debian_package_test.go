package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestDebianPackage makes the release for this machine, and installs, upgrades and purges the deb
// in a Debian that has nothing else, where the service starts and serves events.
func TestDebianPackage(t *testing.T) {
	debootstrap := lookTool(t, "debootstrap")
	if os.Getuid() != 0 || runtime.GOARCH != "amd64" {
		t.Skip("NOT TESTED: debootstrap needs root, and Debian's archive for amd64")
	}

	release := t.TempDir()
	makeRelease(t, release)

	root := filepath.Join(memoryDir(t), "debian")
	output, err := exec.CommandContext(t.Context(), debootstrap, "--variant=minbase", "--include=ca-certificates",
		"bookworm", root).CombinedOutput()
	if err != nil {
		t.Skipf("NOT TESTED: no Debian can be made here: %v\n%s", err, lastLines(string(output), 5))
	}

	mustRun(t, "sh", "-c", "cp "+release+"/*.deb "+root+"/tmp/trunkline.deb && cp package/lifecycle.sh "+root+"/tmp/")
	t.Log(mustRun(t, "unshare", "--mount", "--pid", "--fork", "--net", "sh", "-c",
		"ip link set lo up && exec chroot "+root+" env TMPDIR=/tmp sh /tmp/lifecycle.sh"))
}

// memoryDir returns an empty folder in memory, where dpkg's thousands of syncs cost nothing, or on disk
// where a container may not mount.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", dir).Run()
	if err != nil {
		return dir
	}

	t.Cleanup(func() {
		output, err := exec.Command("umount", "--lazy", dir).CombinedOutput()
		if err != nil {
			t.Errorf("umount %s: %v\n%s", dir, err, output)
		}
	})
	return dir
}

// makeRelease runs make release for this machine alone, into a folder.
func makeRelease(t *testing.T, into string) {
	t.Helper()
	t.Setenv("RELEASE_ARCHES", "amd64")
	t.Setenv("RELEASE_OUT", into)
	mustRun(t, "make", "-C", "..", "release", "VERSION=0.1.0-dev.test") // valid for npm and Python, too
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
