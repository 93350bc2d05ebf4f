package fanout

import (
	"errors"
	"fmt"
	"time"

	"trunkline/event"
	"trunkline/event/state"
)

// mergeViews merges the views of a filter's partitions one after the other; the cursor
// has a position for each. It returns nil if one is behind.
func (m *snapshots) mergeViews(views []*stateView, partitions int, filter *filter, now time.Time,
	merged *mergedEntries) *Snapshot {
	log := m.logIdentity.id()
	for _, v := range views { // the views are large: nothing is copied while one of them is behind
		if !v.isCurrent(now) {
			return nil
		}
	}

	cursor := newCursor(log, partitions)
	s := &Snapshot{Timestamp: now.Unix()}
	var last event.ID

	for _, v := range views {
		at := v.merge(now, filter, merged)
		if at == nil || !log.matches(at.TopicID) {
			return nil
		}

		p := partitionPosition{v.partition, position{at.Offset, -1, at.LeaderEpoch}}
		if source, ok := at.Repeats(); ok {
			p.source = source.Packed()
		}

		cursor.add(p)
		last, s.StateSince = max(last, at.EventID), max(s.StateSince, at.Since)
	}

	merged.settle()
	// cc.state does not have these partitions yet.
	if len(views) == 0 {
		return nil
	}
	if last != 0 {
		s.EventID = last.String()
	}

	s.Cursor = cursor.encode(last)
	return s
}

// mergedEntries has the entries of several views. If a key is in several partitions, the entry with the
// newest event wins, even if it has ended there.
type mergedEntries struct {
	live        map[state.Key]*state.Entry
	endedEvents []lastEvent // of what is not live, ten times as much as what is: a list costs less than a map

	ended map[state.Key]*state.Entry // those that are not live; nil: they are not kept

	keys  []state.Key             // of the entries that are added; nil: all
	wants func(*state.Entry) bool // whether an entry is added; it answers the same for all of a key; nil: all are
}

// lastEvent is the last event of an entry that is not live.
type lastEvent struct {
	key state.Key
	id  event.ID
}

// reset removes all entries.
func (m *mergedEntries) reset() {
	clear(m.live)
	m.endedEvents = m.endedEvents[:0]
	clear(m.ended)
}

func newMergedEntries() *mergedEntries { return &mergedEntries{live: map[state.Key]*state.Entry{}} }

// addFrom adds entries of a view's admitted accounts that have not expired. The caller calls settle after the
// last view.
func (m *mergedEntries) addFrom(v *state.View, admits func(account string) bool, now time.Time) {
	if m.keys == nil {
		v.Each(admits, now, m.add)
		return
	}

	for _, key := range m.keys {
		e := v.Find(key)
		if e != nil && e.Expires() > event.ID(now.UnixNano()) && admits(key.Account) {
			m.add(e)
		}
	}
}

func (m *mergedEntries) add(e *state.Entry) {
	if m.wants != nil && !m.wants(e) {
		return
	}

	key := e.Key()
	if e.Live() {
		known := m.live[key]
		if known == nil || known.EventID < e.EventID {
			m.live[key] = e
		}
		return
	}

	m.endedEvents = append(m.endedEvents, lastEvent{key, e.EventID})
	if m.ended == nil {
		return
	}

	known := m.ended[key]
	if known == nil || known.EventID < e.EventID {
		kept := *e // a view reuses the entries of ended calls
		m.ended[key] = &kept
	}
}

// settle leaves each key in live or in ended.
func (m *mergedEntries) settle() {
	for _, o := range m.endedEvents {
		known := m.live[o.key]
		if known != nil && known.EventID < o.id {
			delete(m.live, o.key)
		}
	}

	for key := range m.ended {
		if m.live[key] != nil {
			delete(m.ended, key)
		}
	}
}

// merge copies the entries of the filter's accounts and returns the position of the
// view, or nil if the view is behind.
func (v *stateView) merge(now time.Time, filter *filter, into *mergedEntries) *state.Position {
	v.mu.Lock()
	defer v.mu.Unlock()

	if !v.isCurrentLocked(now) {
		return nil
	}

	// Get the tree while holding the view's lock: then it has every account of the
	// view.
	tree := v.states.directory.Tree()
	into.addFrom(v.view, func(account string) bool { return filter.matchesAccount(account, tree) }, now)
	return v.view.Position()
}

// behind describes the first of the views that cannot be merged into a snapshot.
func behind(views []*stateView, now time.Time) error {
	for _, v := range views {
		v.mu.Lock()
		current, at, lag := v.isCurrentLocked(now), v.currentAsOf(), v.lag
		v.mu.Unlock()

		switch {
		case current:
		case at.IsZero():
			return fmt.Errorf("%s/%d was never read completely, %d records follow", event.TopicState, v.partition, lag)
		default:
			return fmt.Errorf("%s/%d was read completely %v ago, %d records follow", event.TopicState, v.partition,
				now.Sub(at).Round(time.Millisecond), lag)
		}
	}

	return errors.New("the views were not current at one time")
}

// isCurrent reports whether the view can be merged into a snapshot.
func (v *stateView) isCurrent(now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.isCurrentLocked(now)
}

// isCurrentLocked is isCurrent with the lock held.
func (v *stateView) isCurrentLocked(now time.Time) bool {
	return v.view != nil && v.view.Position() != nil && now.Sub(v.currentAsOf()) <= maxSnapshotAge
}
