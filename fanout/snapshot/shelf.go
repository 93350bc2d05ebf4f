package snapshot

import (
	"time"

	"trunkline/event"
)

// shelf keeps what lives, and for a while also the keys of what has ended: a
// straggler does not bring that back, and what another partition still holds of
// it is known to be over (see Picture).
type shelf[V any] struct {
	age     time.Duration
	live    ledger[V]
	ended   ledger[struct{}]
	dropped int
}

// remembered is how much less room the ended have than the living.
const remembered = 4

func newShelf[V any](age time.Duration, perAccount int, m *memory) shelf[V] {
	return shelf[V]{age: age, live: newLedger[V](perAccount, m), ended: newLedger[struct{}](perAccount/remembered, m)}
}

// resize says how many bytes of text the living entry holds beside its key.
func (s *shelf[V]) resize(key Key, text int) { s.live.resize(key, text) }

// oldest returns when the entry that was not heard of for longest was heard of.
func (s *shelf[V]) oldest() (heard event.ID, ok bool) {
	live, ended := s.live.oldest(), s.ended.oldest()
	switch {
	case live == nil && ended == nil:
		return 0, false
	case live == nil || ended != nil && ended.heard < live.heard:
		return ended.heard, true
	}
	return live.heard, true
}

// dropOldest drops the entry of oldest.
func (s *shelf[V]) dropOldest() {
	live, ended := s.live.oldest(), s.ended.oldest()
	if live == nil || ended != nil && ended.heard < live.heard {
		s.ended.remove(ended.key)
		return
	}
	s.live.remove(live.key)
	s.dropped++
}

// hear finds a living entry or makes it. It is good until the next call.
func (s *shelf[V]) hear(key Key, id event.ID) (value *V, fresh bool) {
	s.ended.remove(key)
	value, fresh, dropped := s.live.hear(key, id)
	s.dropped += dropped
	return value, fresh
}

// find is a living entry, nil when there is none.
func (s *shelf[V]) find(key Key) *V {
	if e := s.live.entries[key]; e != nil {
		return &e.value
	}
	return nil
}

func (s *shelf[V]) end(key Key, id event.ID) {
	s.live.remove(key)
	s.ended.hear(key, id)
}

// over says whether the entry has ended.
func (s *shelf[V]) over(key Key) bool { return s.ended.entries[key] != nil }

// forget drops what was last heard of more than age before the message id.
func (s *shelf[V]) forget(id event.ID) {
	oldest := before(id, s.age)
	s.live.forget(oldest)
	s.ended.forget(oldest)
}

func (s *shelf[V]) size() int { return len(s.live.entries) }

// before is the id that is that much earlier.
func before(id event.ID, age time.Duration) event.ID { return id - event.ID(age) }
