package fanout

import (
	"slices"
	"sync"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// newestAccountOffsets records which accounts had events in which partition, so that a
// resume is not rejected when the deleted records belong to other accounts. The
// partition streams fill it.
type newestAccountOffsets struct {
	mu         sync.Mutex
	partitions map[int]*accountOffsets
}

// accountOffsets covers the offsets in [from, next) completely.
type accountOffsets struct {
	from, next int64
	last       map[string]*int64 // offset of each account's newest event
}

// maxPartitionAccounts bounds the accounts stored per partition. When it is exceeded, the record of
// the partition starts again.
const maxPartitionAccounts = 1 << 16

// record adds consecutive records that start at offset from.
func (o *newestAccountOffsets) record(partition int, from int64, records []kafka.Record) {
	if len(records) == 0 {
		return
	}

	o.mu.Lock()
	defer o.mu.Unlock()

	p := o.partitions[partition]
	// What is kept is one range without holes.
	if p == nil || p.next != from || len(p.last) >= maxPartitionAccounts {
		p = &accountOffsets{from: from, last: make(map[string]*int64)}
		if o.partitions == nil {
			o.partitions = make(map[int]*accountOffsets)
		}
		o.partitions[partition] = p
	}

	for i := range records {
		r := &records[i]
		account := r.Header(event.HeaderAccount)
		last := p.last[string(account)]
		if last != nil {
			// Through the pointer: an assignment to the map would allocate its key.
			*last = r.Offset
		} else {
			p.last[string(account)] = new(r.Offset)
		}
	}

	p.next = records[len(records)-1].Offset + 1
}

// forget removes the data of a partition that is no longer read.
func (o *newestAccountOffsets) forget(partition int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.partitions, partition)
}

// accountsBetween returns the accounts that had events at or after from; known is
// false if other accounts may have had events before to. For a partition whose past is
// unknown it returns all accounts seen there.
func (o *newestAccountOffsets) accountsBetween(partition int, from, to int64) (accounts []string, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()

	p := o.partitions[partition]
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

// gapMayAffect reports whether deleted records in [from, to) may belong to the filter's
// accounts. If no stream has read the range, it assumes that an account has events in
// the partitions of its key, for the old and current partition counts, and wherever it
// was seen.
func (r *resumer) gapMayAffect(filter *filter, partition int, from, to int64, oldPartitionCount int) bool {
	tree := r.directory.Tree()
	accounts, known := r.newestOffsets.accountsBetween(partition, from, to)
	for _, account := range accounts {
		if filter.matchesAccount(account, tree) {
			return true
		}
	}

	if known {
		return false
	}

	if filter.accounts != nil {
		for account := range filter.accounts {
			if r.accountPartitions.mayHaveRecords(account, partition, oldPartitionCount) {
				return true
			}
		}
		return false
	}

	for path := range tree.Paths() {
		if slices.Contains(path, filter.root) &&
			r.accountPartitions.mayHaveRecords(path[0], partition, oldPartitionCount) {
			return true
		}
	}

	return false
}
