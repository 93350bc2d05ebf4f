package snapshot

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"trunkline/event"
)

// View merges the states of several partitions. For a key in several of them,
// the one with the newest message decides, also when the entry has ended there.
type View struct {
	agentVersions map[Key]version[Agent]
	callVersions  map[Key]version[Call]
}

// version is the entry of one state for a key.
type version[V any] struct {
	lastMessage event.ID
	ended       bool
	value       V
}

// NewView creates an empty view.
func NewView() *View {
	return &View{agentVersions: make(map[Key]version[Agent]), callVersions: make(map[Key]version[Call])}
}

// Add copies the entries of admitted accounts of f that have not expired at
// now.
func (p *View) Add(f *State, admits func(account string) bool, now time.Time) {
	add(p.agentVersions, &f.agents, admits, now)
	add(p.callVersions, &f.calls, admits, now)
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

// Agents returns the agents at work, ordered by account and id.
func (p *View) Agents() []Agent {
	return liveValues(p.agentVersions, func(a, b Agent) int { return compare(a.Key, b.Key) })
}

// Calls returns the calls that have not ended, ordered by account and id.
func (p *View) Calls() []Call {
	return liveValues(p.callVersions, func(a, b Call) int { return compare(a.Key, b.Key) })
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
