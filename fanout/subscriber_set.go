package fanout

import (
	"maps"
	"slices"
	"sync"
)

// subscriberSet holds the connected subscribers of this node and the disconnected
// ones whose connection is still open.
type subscriberSet struct {
	mu            sync.Mutex
	connected     map[*subscriber]struct{}
	disconnecting map[*subscriber]struct{}
	removed       map[*subscriber]struct{} // since the last presence update
}

func newSubscriberSet() *subscriberSet {
	return &subscriberSet{
		connected: make(map[*subscriber]struct{}), disconnecting: make(map[*subscriber]struct{}),
		removed: make(map[*subscriber]struct{}),
	}
}

func (m *subscriberSet) add(s *subscriber) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connected[s] = struct{}{}
}

// startDisconnecting moves s from connected to disconnecting, where it stays until forget.
// It returns false when s was not connected.
func (m *subscriberSet) startDisconnecting(s *subscriber) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.connected[s]; !ok {
		return false
	}
	delete(m.connected, s)
	m.disconnecting[s] = struct{}{}
	m.removed[s] = struct{}{}
	return true
}

// forget removes a disconnected subscriber whose connection has ended.
func (m *subscriberSet) forget(s *subscriber) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.disconnecting, s)
}

func (m *subscriberSet) listConnected() []*subscriber { return m.list(m.connected) }

// listDisconnecting returns the disconnected subscribers whose connection is
// still open.
func (m *subscriberSet) listDisconnecting() []*subscriber { return m.list(m.disconnecting) }

// everyone returns the subscribers of listConnected and listDisconnecting, also one that moves from one to the other.
func (m *subscriberSet) everyone() []*subscriber {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.AppendSeq(slices.Collect(maps.Keys(m.connected)), maps.Keys(m.disconnecting))
}

func (m *subscriberSet) list(set map[*subscriber]struct{}) []*subscriber {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*subscriber, 0, len(set))
	for s := range set {
		list = append(list, s)
	}
	return list
}

func (m *subscriberSet) countConnected() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.connected)
}

func (m *subscriberSet) countDisconnecting() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.disconnecting)
}

// takeRemoved returns the subscribers removed since the last call.
func (m *subscriberSet) takeRemoved() []*subscriber {
	m.mu.Lock()
	defer m.mu.Unlock()
	removed := make([]*subscriber, 0, len(m.removed))
	for s := range m.removed {
		removed = append(removed, s)
	}
	clear(m.removed)
	return removed
}
