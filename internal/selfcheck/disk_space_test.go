package selfcheck

import "testing"

func TestSpace(t *testing.T) {
	for _, tc := range []struct {
		space diskSpace
		low   bool
	}{
		{diskSpace{Free: 63 << 20, Size: 100 << 30}, true}, {diskSpace{Free: 65 << 20, Size: 100 << 30}, false},
		{diskSpace{Free: 1 << 20, Size: 100 << 20}, true}, {diskSpace{Free: 3 << 20, Size: 100 << 20}, false},
	} {
		if got := tc.space.below(64 << 20); got != tc.low {
			t.Errorf("%v: low is %v", tc.space, got)
		}
	}

	r, err := diskSpaceOf(t.TempDir())
	if err != nil || r.Size == 0 || r.Free > r.Size {
		t.Errorf("%+v %v", r, err)
	}

	if _, err := diskSpaceOf("/absent"); err == nil {
		t.Error("there is no such place")
	}
}
