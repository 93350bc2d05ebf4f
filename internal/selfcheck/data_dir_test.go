package selfcheck

import (
	"path/filepath"
	"strings"
	"testing"

	"trunkline/internal/setting"
)

func TestAStartNeedsFreeDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	if err := (DataDir{path, 1 << 20}).Prepare(); err != nil {
		t.Skipf("NOT TESTED: %v", err)
	}
	if err := (DataDir{path, 0}).Prepare(); err != nil {
		t.Errorf("without a floor: %v", err)
	}

	disk, err := diskSpaceOf(path)
	if err != nil {
		t.Fatal(err)
	}

	if disk.Free >= disk.Size/50 { // else the disk is below every floor
		if err := (DataDir{path, setting.Bytes(disk.Free / 2)}).Prepare(); err != nil {
			t.Errorf("twice the floor is free: %v", err)
		}
	}

	if err := (DataDir{filepath.Join(path, "missing"), 1}).CheckSpace(); err == nil ||
		!strings.Contains(err.Error(), "free space") {
		t.Errorf("a directory that is not there: %v", err)
	}
}
