package fanout

import (
	"iter"
	"math/bits"

	"trunkline/event"
)

// partitionSet is a set of partitions of cc.evt.
type partitionSet [event.MaxPartitions / 64]uint64

func (s *partitionSet) add(p int)      { s[p/64] |= 1 << (p % 64) }
func (s *partitionSet) remove(p int)   { s[p/64] &^= 1 << (p % 64) }
func (s *partitionSet) has(p int) bool { return s[p/64]&(1<<(p%64)) != 0 }

func (s partitionSet) union(t partitionSet) partitionSet {
	for i := range s {
		s[i] |= t[i]
	}
	return s
}

func (s partitionSet) minus(t partitionSet) partitionSet {
	for i := range s {
		s[i] &^= t[i]
	}
	return s
}

func (s partitionSet) empty() bool { return s == partitionSet{} }

// all yields the partitions in ascending order.
func (s partitionSet) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(64*i + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}
