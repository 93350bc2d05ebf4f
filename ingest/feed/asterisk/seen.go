package asterisk

import (
	"maps"
	"slices"
	"sync"
	"time"

	"trunkline/telephony/ami"
)

// settleTime is the time for which an object counts as unsettled after an event, because Asterisk's
// lists lag behind its events.
const settleTime = time.Second

// seen stores facts from events that Asterisk's lists do not contain: the recently changed objects and
// the calls on hold.
type seen struct {
	mu     sync.Mutex
	recent [2]map[string]bool // ids of the current period of settleTime and of the one before
	began  time.Time
	held   map[string]bool // Uniqueid
}

func newSeen() *seen {
	return &seen{recent: [2]map[string]bool{{}, {}}, held: map[string]bool{}}
}

// note records an event of the objects.
func (s *seen) note(p *ami.Message, ids []string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rotate(now)
	for _, id := range ids {
		s.recent[0][id] = true
	}
	switch p.Name() {
	case "Hold":
		s.held[value(p, "Uniqueid")] = true
	case "Unhold", "Hangup":
		delete(s.held, value(p, "Uniqueid"))
	}
}

func (s *seen) rotate(now time.Time) {
	switch age := now.Sub(s.began); {
	case age >= 2*settleTime:
		s.recent, s.began = [2]map[string]bool{{}, {}}, now
	case age >= settleTime:
		s.recent, s.began = [2]map[string]bool{{}, s.recent[0]}, now
	}
}

// unsettled returns the recently changed objects.
func (s *seen) unsettled(now time.Time) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rotate(now)
	return slices.AppendSeq(slices.Collect(maps.Keys(s.recent[0])), maps.Keys(s.recent[1]))
}

// onHold returns the calls on hold, and deletes those that are not in calls.
func (s *seen) onHold(calls map[string]bool) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.held, func(id string, _ bool) bool { return !calls[id] })
	return maps.Clone(s.held)
}
