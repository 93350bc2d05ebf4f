package audit

import (
	"sync"
	"time"
)

// recentReports has the entries reported within the last minute.
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
	maxRecentReports = 10_000 // above, all are deleted
)

// add reports whether e is not a repeat.
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
