package memorylimit

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/unix"
)

// ReleaseStartMemory returns to the kernel what only the start needed: free memory of the heap, and the
// pages of the program's own file that were mapped meanwhile. Code that runs again is mapped again
// from the page cache, in groups of pages around it. A server at rest keeps half as much resident.
func ReleaseStartMemory() error {
	debug.FreeOSMemory()

	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("finding the program's file: %w", err)
	}

	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("reading the program's mappings: %w", err)
	}
	defer maps.Close()

	for _, m := range cleanMappings(maps, program) {
		// Not a slice and unix.Madvise: the addresses are not the Go runtime's.
		_, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED)
		if errno != 0 {
			return fmt.Errorf("releasing the program's pages: %w", errno)
		}
	}

	return nil
}

// mapping is a part of the address space, from its first address to that after its last.
type mapping struct{ start, end uintptr }

// cleanMappings returns where a file is mapped and equals it, from smaps as in proc(5): not to be
// written, and without pages that were written earlier, such as relocations, which would be lost.
func cleanMappings(smaps io.Reader, file string) (clean []mapping) {
	var current mapping
	ofFile := false
	lines := bufio.NewScanner(smaps)

	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 5 && strings.Contains(fields[0], "-"):
			current = mapping{}
			_, err := fmt.Sscanf(fields[0], "%x-%x", &current.start, &current.end)
			ofFile = err == nil && len(fields) == 6 && fields[5] == file && !strings.Contains(fields[1], "w")
		case len(fields) == 3 && fields[0] == "Anonymous:" && ofFile && fields[1] == "0":
			clean = append(clean, current)
		}
	}

	return clean
}
