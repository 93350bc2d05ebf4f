package sip

import (
	"context"
	"slices"
	"sync"
	"time"
)

// MemoryBindings stores bindings in this process.
type MemoryBindings struct {
	mu sync.Mutex
	of map[AOR][]Binding
}

// NewMemoryBindings returns an empty store.
func NewMemoryBindings() *MemoryBindings { return &MemoryBindings{of: map[AOR][]Binding{}} }

// List is Bindings'.
func (m *MemoryBindings) List(_ context.Context, aor AOR) ([]Binding, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	return slices.DeleteFunc(slices.Clone(m.of[aor]), func(b Binding) bool { return !b.Expires.After(now) }), nil
}

// Put is Bindings'.
func (m *MemoryBindings) Put(_ context.Context, b Binding) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.IndexFunc(m.of[b.AOR], b.same); i >= 0 {
		m.of[b.AOR][i] = b
		return nil
	}
	m.of[b.AOR] = append(m.of[b.AOR], b)
	return nil
}

// Remove is Bindings'.
func (m *MemoryBindings) Remove(_ context.Context, b Binding) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.of[b.AOR])
	left := slices.DeleteFunc(m.of[b.AOR], b.same)
	if m.of[b.AOR] = left; len(left) == 0 {
		delete(m.of, b.AOR)
	}
	return len(left) < before, nil
}

// Expire is Bindings'.
func (m *MemoryBindings) Expire(_ context.Context, now time.Time) ([]Binding, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var gone []Binding
	for aor, bindings := range m.of {
		left := slices.DeleteFunc(bindings, func(b Binding) bool {
			if b.Expires.After(now) {
				return false
			}
			gone = append(gone, b)
			return true
		})
		if m.of[aor] = left; len(left) == 0 {
			delete(m.of, aor)
		}
	}
	return gone, nil
}

// same reports whether another binding has the same user and contact as b.
func (b Binding) same(other Binding) bool { return b.AOR == other.AOR && b.Contact == other.Contact }
