package fanout

import "sync"

// members are the connected subscribers of this node, and
// the disconnected ones whose connection is still open.
type members struct {
	mu      sync.Mutex
	here    map[*subscriber]struct{}
	leaving map[*subscriber]struct{}
	left    map[*subscriber]struct{} // since the last presence update
}

func newMembers() *members {
	return &members{
		here: make(map[*subscriber]struct{}), leaving: make(map[*subscriber]struct{}),
		left: make(map[*subscriber]struct{}),
	}
}

func (m *members) add(s *subscriber) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.here[s] = struct{}{}
}

// remove takes s off the counts; false when it was off already. It stays among
// the leaving until forget.
func (m *members) remove(s *subscriber) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.here[s]; !ok {
		return false
	}
	delete(m.here, s)
	m.leaving[s] = struct{}{}
	m.left[s] = struct{}{}
	return true
}

func (m *members) forget(s *subscriber) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.leaving, s)
}

func (m *members) all() []*subscriber { return m.list(m.here) }

// ending returns the disconnected ones whose connection is still open.
func (m *members) ending() []*subscriber { return m.list(m.leaving) }

func (m *members) list(set map[*subscriber]struct{}) []*subscriber {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*subscriber, 0, len(set))
	for s := range set {
		list = append(list, s)
	}
	return list
}

func (m *members) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.here)
}

func (m *members) lingering() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.leaving)
}

// takeLeft takes those who left since the last call.
func (m *members) takeLeft() []*subscriber {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := make([]*subscriber, 0, len(m.left))
	for s := range m.left {
		left = append(left, s)
	}
	clear(m.left)
	return left
}
