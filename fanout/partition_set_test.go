package fanout

import (
	"slices"
	"testing"
)

func TestPartitionSet(t *testing.T) {
	s := set(0, 63, 64, 1023)
	if got := slices.Collect(s.all()); !slices.Equal(got, []int{0, 63, 64, 1023}) {
		t.Errorf("got %v", got)
	}
	s.remove(64)
	if s.has(64) || !s.has(63) || s != set(63).union(set(0, 1023)) || s.minus(s) != set() || s.empty() ||
		!set().empty() {
		t.Errorf("got %v", slices.Collect(s.all()))
	}
}
