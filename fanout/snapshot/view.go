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
type View struct {
	agents map[Key]version[Agent]
	calls  map[Key]version[Call]
}

// seen is what one state knows of a key.
type version[V any] struct {
	lastMessage event.ID
	ended       bool
	value       V
}

// NewPicture is an empty picture.
func NewView() *View {
	return &View{agents: make(map[Key]version[Agent]), calls: make(map[Key]version[Call])}
}

// Add copies what f holds, at that time, of the accounts that admits lets
// through.
func (p *View) Add(f *State, admits func(account string) bool, now time.Time) {
	add(p.agents, &f.agents, admits, now)
	add(p.calls, &f.calls, admits, now)
}

func add[V any](into map[Key]version[V], s *expiringMap[V], admits func(string) bool, now time.Time) {
	oldest := subtractAge(event.ID(now.UnixNano()), s.age)
	put := func(key Key, now version[V]) {
		if known, ok := into[key]; !ok || known.lastMessage < now.lastMessage {
			into[key] = now
		}
	}
	s.live.each(admits, oldest, func(e *entry[V]) { put(e.key, version[V]{lastMessage: e.lastMessage, value: e.value}) })
	s.ended.each(admits, oldest, func(e *entry[struct{}]) { put(e.key, version[V]{lastMessage: e.lastMessage, ended: true}) })
}

// Agents are the agents at work, by account and id.
func (p *View) Agents() []Agent {
	return liveValues(p.agents, func(a, b Agent) int { return compare(a.Key, b.Key) })
}

// Calls are the calls that have not ended, by account and id.
func (p *View) Calls() []Call {
	return liveValues(p.calls, func(a, b Call) int { return compare(a.Key, b.Key) })
}

func liveValues[V any](all map[Key]version[V], order func(a, b V) int) []V {
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
