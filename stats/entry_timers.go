package stats

import (
	"cmp"
	"container/heap"

	"trunkline/event"
)

// timers is a heap of entries by the event id at which they are due. Its order is
// total, so that the next due entry does not depend on the order of insertion.
type timers []entry

func (t timers) Len() int { return len(t) }

func (t timers) Less(i, j int) bool {
	return before(t[i].commonHeader(), t[j].commonHeader())
}

// before reports whether a is due before b.
func before(a, b *header) bool {
	return cmp.Or(cmp.Compare(a.due, b.due), a.key.compare(b.key)) < 0
}

func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].commonHeader().timerIndex, t[j].commonHeader().timerIndex = i, j
}

// Push implements heap.Interface.
func (t *timers) Push(e any) {
	added := e.(entry)
	added.commonHeader().timerIndex = len(*t)
	*t = append(*t, added)
}

// Pop implements heap.Interface.
func (t *timers) Pop() any {
	last := len(*t) - 1
	e := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	return e
}

func (t *timers) add(e entry)    { heap.Push(t, e) }
func (t *timers) remove(e entry) { heap.Remove(t, e.commonHeader().timerIndex) }
func (t *timers) fix(e entry)    { heap.Fix(t, e.commonHeader().timerIndex) }

// nextDue returns the id at which the next entry is due, never if there is none.
func (t timers) nextDue() event.ID {
	if len(t) == 0 {
		return never
	}
	return t[0].commonHeader().due
}
