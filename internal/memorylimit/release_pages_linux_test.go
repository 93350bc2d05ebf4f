package memorylimit

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestOnlyMappingsThatEqualTheFileAreReleased(t *testing.T) {
	const smaps = `00400000-01a00000 r-xp 00000000 fe:00 247026   /usr/bin/trunkline
Size:              22528 kB
Anonymous:             0 kB
01a00000-03c00000 r--p 01600000 fe:00 247026   /usr/bin/trunkline
Anonymous:             0 kB
03c00000-03c10000 r--p 03800000 fe:00 247026   /usr/bin/trunkline
Anonymous:            64 kB
03c10000-03d00000 rw-p 03810000 fe:00 247026   /usr/bin/trunkline
Anonymous:             0 kB
7f0000000000-7f0000001000 r--p 00000000 fe:00 11   /usr/lib/libc.so.6
Anonymous:             0 kB
7f0000002000-7f0000003000 rw-p 00000000 00:00 0
Anonymous:             0 kB
VmFlags: rd wr mr
`

	got := cleanMappings(strings.NewReader(smaps), "/usr/bin/trunkline")
	want := []mapping{{0x400000, 0x1a00000}, {0x1a00000, 0x3c00000}}
	if !slices.Equal(got, want) {
		t.Errorf("released %x, want %x: what was written, or is another file's, must stay", got, want)
	}
}

func TestAProcessGoesOnAfterItsStartIsReleased(t *testing.T) {
	err := ReleaseStartMemory()
	if err != nil {
		t.Fatal(err)
	}

	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}

	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}

	if len(cleanMappings(strings.NewReader(string(smaps)), program)) == 0 {
		t.Error("no mapping of the test's own program was found: nothing was released")
	}
}
