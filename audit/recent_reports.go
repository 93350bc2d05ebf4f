package audit

import (
	"sync"
	"time"
)

// recentReports has the times of the last reports of ReportOnce.
type recentReports struct {
	mu           sync.Mutex
	lastReported map[reportKey]time.Time
}

type reportKey struct {
	actor, address, target string
	action                 Action
}

const (
	repeatInterval   = time.Minute
	maxRecentReports = 10_000 // above it, all are deleted
)

// add returns false if e repeats an entry within repeatInterval. Otherwise it stores the
// time of e and returns true.
func (r *recentReports) add(e Entry, now time.Time) bool {
	key := reportKey{e.Actor, e.Address, e.Target, e.Action}
	r.mu.Lock()
	defer r.mu.Unlock()

	if at, ok := r.lastReported[key]; ok && now.Sub(at) < repeatInterval {
		return false
	}
	if len(r.lastReported) >= maxRecentReports {
		clear(r.lastReported)
	}

	r.lastReported[key] = now
	return true
}
