package snapshot

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"trunkline/event"
)

// Picture puts the states of several partitions together. What several of them
// know is as the one says that heard of it last, also when that says it has
// ended.
type Picture struct {
	agents map[Key]seen[Agent]
	calls  map[Key]seen[Call]
}

// seen is what one state knows of a key.
type seen[V any] struct {
	heard event.ID
	ended bool
	value V
}

// NewPicture is an empty picture.
func NewPicture() *Picture {
	return &Picture{agents: make(map[Key]seen[Agent]), calls: make(map[Key]seen[Call])}
}

// Add copies what f holds, at that time, of the accounts that admits lets
// through.
func (p *Picture) Add(f *State, admits func(account string) bool, now time.Time) {
	add(p.agents, &f.agents, admits, now)
	add(p.calls, &f.calls, admits, now)
}

func add[V any](into map[Key]seen[V], s *shelf[V], admits func(string) bool, now time.Time) {
	oldest := before(event.ID(now.UnixNano()), s.age)
	put := func(key Key, now seen[V]) {
		if known, ok := into[key]; !ok || known.heard < now.heard {
			into[key] = now
		}
	}
	s.live.each(admits, oldest, func(e *entry[V]) { put(e.key, seen[V]{heard: e.heard, value: e.value}) })
	s.ended.each(admits, oldest, func(e *entry[struct{}]) { put(e.key, seen[V]{heard: e.heard, ended: true}) })
}

// Agents are the agents at work, by account and id.
func (p *Picture) Agents() []Agent {
	return living(p.agents, func(a, b Agent) int { return compare(a.Key, b.Key) })
}

// Calls are the calls that have not ended, by account and id.
func (p *Picture) Calls() []Call {
	return living(p.calls, func(a, b Call) int { return compare(a.Key, b.Key) })
}

func living[V any](all map[Key]seen[V], order func(a, b V) int) []V {
	list := make([]V, 0, len(all))
	for s := range maps.Values(all) {
		if !s.ended {
			list = append(list, s.value)
		}
	}
	slices.SortFunc(list, order)
	return list
}

func compare(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.ID, b.ID))
}
