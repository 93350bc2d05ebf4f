package snapshot

import "sync/atomic"

// Budget bounds the memory of several states together, in bytes. Each state may use an equal share of one half; the other half is for those that need more. It
// is safe for concurrent use.
type Budget struct {
	half   int64
	states atomic.Int64
	lent   atomic.Int64 // bytes of the common half that are in use
}

// NewBudget bounds the states that are made with it to the bytes.
func NewBudget(bytes int64) *Budget { return &Budget{half: bytes / 2} }

func (b *Budget) borrow(bytes int64) bool {
	if b.lent.Add(bytes) > b.half {
		b.lent.Add(-bytes)
		return false
	}
	return true
}

// Memory of an entry and of an account beside their strings: structures, map
// slots and list elements, rounded up to what the allocator gives.
const (
	entryBytes   = 400
	accountBytes = 250
)

// memory is what one state uses of a budget.
type memory struct {
	budget *Budget
	used   int64
	lent   int64 // of used, from the common half
}

// settle takes what is used from the budget, or gives back what is not. It is
// false when the budget is exhausted.
func (m *memory) settle() bool {
	share := m.budget.half / m.budget.states.Load()
	need := max(0, m.used-share) - m.lent
	if need > 0 && !m.budget.borrow(need) {
		return false
	}
	if need < 0 {
		m.budget.lent.Add(need)
	}
	m.lent += need
	return true
}
