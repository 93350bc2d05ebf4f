package snapshot

import (
	"time"

	"trunkline/event"
)

// expiringMap keeps live entries and, until they expire, the keys of ended
// ones: a late message does not revive them, and View ignores older entries of
// other partitions.
type expiringMap[V any] struct {
	age     time.Duration
	live    recencyMap[V]
	ended   recencyMap[struct{}]
	dropped int
}

// endedFraction divides the bound of live entries to get that of ended ones.
const endedFraction = 4

func newExpiringMap[V any](age time.Duration, perAccount int, m *memory) expiringMap[V] {
	return expiringMap[V]{age: age, live: newRecencyMap[V](perAccount, m), ended: newRecencyMap[struct{}](perAccount/endedFraction, m)}
}

// resize sets the bytes of text that the live entry holds beside its key.
func (s *expiringMap[V]) resize(key Key, text int) { s.live.resize(key, text) }

// oldest returns the last message of the least recent entry.
func (s *expiringMap[V]) oldest() (heard event.ID, ok bool) {
	live, ended := s.live.oldest(), s.ended.oldest()
	switch {
	case live == nil && ended == nil:
		return 0, false
	case live == nil || ended != nil && ended.lastMessage < live.lastMessage:
		return ended.lastMessage, true
	}
	return live.lastMessage, true
}

// dropOldest drops the entry of oldest.
func (s *expiringMap[V]) dropOldest() {
	live, ended := s.live.oldest(), s.ended.oldest()
	if live == nil || ended != nil && ended.lastMessage < live.lastMessage {
		s.ended.remove(ended.key)
		return
	}
	s.live.remove(live.key)
	s.dropped++
}

// touch finds or creates a live entry. The pointer is valid until the next
// call.
func (s *expiringMap[V]) touch(key Key, id event.ID) (value *V, fresh bool) {
	s.ended.remove(key)
	value, fresh, dropped := s.live.touch(key, id)
	s.dropped += dropped
	return value, fresh
}

// find returns a live entry, nil when there is none.
func (s *expiringMap[V]) find(key Key) *V {
	if e := s.live.entries[key]; e != nil {
		return &e.value
	}
	return nil
}

func (s *expiringMap[V]) end(key Key, id event.ID) {
	s.live.remove(key)
	s.ended.touch(key, id)
}

// hasEnded reports whether the entry has ended.
func (s *expiringMap[V]) hasEnded(key Key) bool { return s.ended.entries[key] != nil }

// expire removes entries whose last message is more than age before id.
func (s *expiringMap[V]) expire(id event.ID) {
	oldest := subtractAge(id, s.age)
	s.live.expire(oldest)
	s.ended.expire(oldest)
}

func (s *expiringMap[V]) size() int { return len(s.live.entries) }

// subtractAge returns the id that is that much earlier.
func subtractAge(id event.ID, age time.Duration) event.ID { return id - event.ID(age) }
