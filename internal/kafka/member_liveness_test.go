package kafka

import (
	"slices"
	"testing"
	"time"
)

func TestOnlyMembersThatWereSilentLongEnoughAreRemoved(t *testing.T) {
	start := time.Now()
	var s silenceDetector
	for _, step := range []struct {
		after  time.Duration
		counts map[string]int64
		silent []string
	}{
		{0, map[string]int64{"own": 1, "a": 1, "b": 9}, nil},
		{300 * time.Millisecond, map[string]int64{"own": 2, "a": 2, "b": 9}, nil},
		{1100 * time.Millisecond, map[string]int64{"own": 2, "a": 5, "b": 9}, nil},
		{1500 * time.Millisecond, map[string]int64{"own": 2, "a": 6, "b": 9}, []string{"b"}}, // never oneself
		{1800 * time.Millisecond, map[string]int64{"own": 3, "a": 6}, nil},
		// Redis lost all, and had it again before a's next report.
		{2100 * time.Millisecond, map[string]int64{"own": 1}, nil},
		{2400 * time.Millisecond, map[string]int64{"own": 2, "a": 1}, nil},
		// This process saw no reports for a while: no member counts as silent.
		{9 * time.Second, map[string]int64{"own": 3, "a": 1}, nil},
		{9800 * time.Millisecond, map[string]int64{"own": 4, "a": 1}, nil},
		{10500 * time.Millisecond, map[string]int64{"own": 5, "a": 1}, []string{"a"}},
	} {
		if got := s.update(start.Add(step.after), step.counts, "own"); !slices.Equal(got, step.silent) {
			t.Errorf("after %v: %v, want %v", step.after, got, step.silent)
		}
	}
}
