package asterisk

import (
	"maps"
	"slices"
	"sync"
	"time"

	"trunkline/telephony/ami"
)

// settleTime is the time for which an object counts as recently changed after an event, because Asterisk's
// lists lag behind its events.
const settleTime = time.Second

// recentEvents stores facts from events that Asterisk's lists do not contain: the recently changed objects and
// the calls on hold.
type recentEvents struct {
	mu          sync.Mutex
	changedIDs  [2]map[string]bool // ids of the current period of settleTime and of the one before
	began       time.Time          // of the current period
	callsOnHold map[string]bool    // Uniqueid; true: parked
}

func newRecentEvents() *recentEvents {
	return &recentEvents{changedIDs: [2]map[string]bool{{}, {}}, callsOnHold: map[string]bool{}}
}

// add records an event and the ids of its objects.
func (s *recentEvents) add(message *ami.Message, ids []string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.rotate(now)
	for _, id := range ids {
		s.changedIDs[0][id] = true
	}

	switch message.Name() {
	case "Hold":
		s.callsOnHold[knownValue(message, "Uniqueid")] = false
	case "ParkedCall":
		s.callsOnHold[knownValue(message, "ParkeeUniqueid")] = true
	case "UnParkedCall", "ParkedCallTimeOut", "ParkedCallGiveUp":
		delete(s.callsOnHold, knownValue(message, "ParkeeUniqueid"))
	case "Unhold", "Hangup":
		delete(s.callsOnHold, knownValue(message, "Uniqueid"))
	}
}

// rotate begins a period of settleTime if the current one is over.
func (s *recentEvents) rotate(now time.Time) {
	switch age := now.Sub(s.began); {
	case age >= 2*settleTime:
		s.changedIDs, s.began = [2]map[string]bool{{}, {}}, now
	case age >= settleTime:
		s.changedIDs, s.began = [2]map[string]bool{{}, s.changedIDs[0]}, now
	}
}

// recentlyChanged returns the ids of the objects with an event in this period of settleTime or the one before.
func (s *recentEvents) recentlyChanged(now time.Time) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rotate(now)
	return slices.AppendSeq(slices.Collect(maps.Keys(s.changedIDs[0])), maps.Keys(s.changedIDs[1]))
}

// dropEndedAndListHeld returns the calls on hold, with whether each is parked. It forgets those that are not in calls.
func (s *recentEvents) dropEndedAndListHeld(calls map[string]bool) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.callsOnHold, func(id string, _ bool) bool { return !calls[id] })
	return maps.Clone(s.callsOnHold)
}
