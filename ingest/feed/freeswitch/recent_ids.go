package freeswitch

import (
	"slices"
	"time"
)

// recentIDs has the ids of objects with recent events.
type recentIDs struct {
	times []time.Time // when each of ids was added
	ids   []string
}

// add adds ids and deletes those before since.
func (r *recentIDs) add(now, since time.Time, ids []string) {
	r.deleteBefore(since)
	for _, id := range ids {
		r.times, r.ids = append(r.times, now), append(r.ids, id)
	}
}

// since returns the ids since a time, each once.
func (r *recentIDs) since(since time.Time) []string {
	r.deleteBefore(since)
	ids := slices.Clone(r.ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (r *recentIDs) deleteBefore(since time.Time) {
	old := 0
	for old < len(r.times) && r.times[old].Before(since) {
		old++
	}
	r.times, r.ids = r.times[old:], r.ids[old:]
}
