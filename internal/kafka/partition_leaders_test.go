package kafka

import (
	"testing"
	"time"
)

// Of two leaders of a partition the one with the higher epoch counts, whichever was reported last, unless it was
// reported long ago: then the topic is another one.
func TestABrokerThatIsBehindIsNotBelieved(t *testing.T) {
	now := time.Now()
	recent, old := now.Add(-time.Second), now.Add(-time.Hour)
	for _, test := range []struct {
		name         string
		before, said leadership
		want         string
	}{
		{"a later leader", leadership{"a", 3, recent}, leadership{"b", 4, now}, "b"},
		{"the same", leadership{"a", 3, recent}, leadership{"a", 3, now}, "a"},
		{"no leader for now", leadership{"a", 3, recent}, leadership{"", 4, now}, ""},
		{"an earlier leader, frozen meanwhile", leadership{"b", 4, recent}, leadership{"a", 3, now}, "b"},
		{"a topic made anew", leadership{"b", 4, old}, leadership{"a", 0, now}, "a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := mergeByEpoch([]leadership{test.before}, []leadership{test.said, {"new", 0, now}}, now)
			if len(got) != 2 || got[0].address != test.want || got[1].address != "new" {
				t.Errorf("got %v", got)
			}
		})
	}
}
