package fanout

import (
	"slices"
	"sync"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// seenAccounts records which accounts had events in which partition, so that a
// client is not refused for deleted records of other accounts. The partition
// streams fill it.
type seenAccounts struct {
	mu         sync.Mutex
	partitions map[int]*seenPartition
}

// seenPartition covers the offsets in [from, next) completely.
type seenPartition struct {
	from, next int64
	last       map[string]*int64 // offset of each account's newest event
}

// maxSeen bounds the accounts stored per partition. When it is exceeded, the record of
// the partition starts again.
const maxSeen = 1 << 16

// record adds consecutive records that start at offset from.
func (s *seenAccounts) record(partition int, from int64, records []kafka.Record) {
	if len(records) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.partitions[partition]
	if p == nil || p.next != from || len(p.last) >= maxSeen {
		p = &seenPartition{from: from, last: make(map[string]*int64)}
		if s.partitions == nil {
			s.partitions = make(map[int]*seenPartition)
		}
		s.partitions[partition] = p
	}
	for i := range records {
		r := &records[i]
		account := r.Header(event.HeaderAccount)
		if last := p.last[string(account)]; last != nil {
			*last = r.Offset
		} else {
			p.last[string(account)] = new(r.Offset)
		}
	}
	p.next = records[len(records)-1].Offset + 1
}

// forget removes the data of a partition that is no longer read.
func (s *seenAccounts) forget(partition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.partitions, partition)
}

// accountsBetween returns the accounts that had events at or after from; known is
// false if other accounts may have had events before to. For a partition whose past is
// unknown it returns all accounts seen there.
func (s *seenAccounts) accountsBetween(partition int, from, to int64) (accounts []string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.partitions[partition]
	if p == nil {
		return nil, false
	}
	known = p.from <= from && p.next >= to
	for account, last := range p.last {
		if *last >= from || !known {
			accounts = append(accounts, account)
		}
	}
	return accounts, known
}

// mayNeed reports whether deleted records in [from, to) of a partition may have been
// of the filter's accounts. If no stream has read them, an account may have events in
// the partitions of its key, for the number of partitions now and then, and in every
// partition where it was seen.
func (f *Fanout) mayNeed(flt *filter, partition int, from, to int64, partitionsThen int) bool {
	tree := f.directory.Tree()
	accounts, known := f.seen.accountsBetween(partition, from, to)
	for _, account := range accounts {
		if flt.matchesAccount(account, tree) {
			return true
		}
	}
	if known {
		return false
	}
	if flt.accounts != nil {
		for account := range flt.accounts {
			if f.placements.mayHold(account, partition, partitionsThen) {
				return true
			}
		}
		return false
	}
	for path := range tree.Paths() {
		if slices.Contains(path, flt.root) && f.placements.mayHold(path[0], partition, partitionsThen) {
			return true
		}
	}
	return false
}
