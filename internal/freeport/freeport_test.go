package freeport

import (
	"slices"
	"testing"
)

func TestAPortIsFoundOnce(t *testing.T) {
	var all []int
	for range 40 {
		ports, err := Find(50)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ports...)
	}

	slices.Sort(all)
	if different := len(slices.Compact(slices.Clone(all))); different != len(all) {
		t.Errorf("%d different ports of %d", different, len(all))
	}
}
