package snapshot

import (
	"time"

	"trunkline/event"
)

// shelf keeps what lives, and for a while also the keys of what has ended: a
// straggler does not bring that back, and what another partition still holds of
// it is known to be over (see Picture).
type expiringMap[V any] struct {
	age     time.Duration
	live    recencyMap[V]
	ended   recencyMap[struct{}]
	dropped int
}

// remembered is how much less room the ended have than the living.
const endedFraction = 4

func newExpiringMap[V any](age time.Duration, perAccount int, m *memory) expiringMap[V] {
	return expiringMap[V]{age: age, live: newRecencyMap[V](perAccount, m), ended: newRecencyMap[struct{}](perAccount/endedFraction, m)}
}

// resize says how many bytes of text the living entry holds beside its key.
func (s *expiringMap[V]) resize(key Key, text int) { s.live.resize(key, text) }

// oldest returns when the entry that was not heard of for longest was heard of.
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

// hear finds a living entry or makes it. It is good until the next call.
func (s *expiringMap[V]) touch(key Key, id event.ID) (value *V, fresh bool) {
	s.ended.remove(key)
	value, fresh, dropped := s.live.touch(key, id)
	s.dropped += dropped
	return value, fresh
}

// find is a living entry, nil when there is none.
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

// over says whether the entry has ended.
func (s *expiringMap[V]) hasEnded(key Key) bool { return s.ended.entries[key] != nil }

// forget drops what was last heard of more than age before the message id.
func (s *expiringMap[V]) expire(id event.ID) {
	oldest := subtractAge(id, s.age)
	s.live.expire(oldest)
	s.ended.expire(oldest)
}

func (s *expiringMap[V]) size() int { return len(s.live.entries) }

// before is the id that is that much earlier.
func subtractAge(id event.ID, age time.Duration) event.ID { return id - event.ID(age) }
