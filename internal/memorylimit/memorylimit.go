// Package memorylimit makes the Go runtime obey the memory limit of the process's
// container (cgroup version 1 or 2), and returns to the kernel the memory that only the
// start of the process needed. It reads files once, at start; no goroutines, no state.
package memorylimit

import (
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

// Variable is the environment variable that sets the limit instead.
const Variable = "GOMEMLIMIT"

// unlimited is the least value that cgroup version 1 shows for no limit: it is rounded
// down to a page, whose size differs.
const unlimited = math.MaxInt64 - 1<<20

// Follow sets the runtime's limit to nine tenths of the container's, which leaves a tenth
// for what the runtime does not count, and returns it. It returns 0 and changes nothing if
// the container has no limit or Variable is set. root is the root of the file system.
func Follow(root fs.FS, getenv func(string) string) (limit int64) {
	if getenv(Variable) != "" {
		return 0
	}

	container := ContainerLimit(root)
	if container == 0 {
		return 0
	}

	limit = container / 10 * 9
	debug.SetMemoryLimit(limit)
	return limit
}

// ContainerLimit returns the memory limit of the process's container in bytes, the lowest of its
// cgroup and those above it; 0 if there is none.
func ContainerLimit(root fs.FS) int64 {
	lowest := int64(0)
	note := func(file string) {
		content, err := fs.ReadFile(root, file)
		if err != nil {
			return // this version of cgroups, or this group, does not exist
		}

		limit, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
		if err != nil || limit <= 0 || limit >= unlimited { // "max"
			return
		}

		if lowest == 0 || limit < lowest {
			lowest = limit
		}
	}

	membership, _ := fs.ReadFile(root, "proc/self/cgroup") // absent outside Linux
	for line := range strings.Lines(string(membership)) {
		controllers, group, ok := splitMembership(line)
		if !ok {
			continue
		}

		base, file := "sys/fs/cgroup", "memory.max"
		if controllers != "" {
			base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}

		// In a namespace of its own the process sees its group as the root.
		for ; ; group = path.Dir(group) {
			note(path.Join(base, group, file))
			if group == "/" || group == "." {
				break
			}
		}
	}

	return lowest
}

// splitMembership parses a line hierarchy:controllers:group of /proc/self/cgroup. ok is
// false for one that has nothing to do with memory.
func splitMembership(line string) (controllers, group string, ok bool) {
	parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
	if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
		return "", "", false
	}

	isVersion2 := parts[0] == "0" && parts[1] == ""
	hasMemory := false
	for controller := range strings.SplitSeq(parts[1], ",") {
		hasMemory = hasMemory || controller == "memory"
	}

	return parts[1], path.Clean(parts[2]), isVersion2 || hasMemory
}
